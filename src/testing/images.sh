#!/bin/sh
# Makes images that stand in for official ones, from Debian's own programs on this machine, for tests:
#   sh images.sh postgres=REFERENCE mariadb=REFERENCE redis=REFERENCE nginx=REFERENCE
# They take the same variables and keep their data in the same places. An image that is there already is left alone;
# the references that were made are printed, a line each.
set -eu
umask 022

main() {
  all=$(mktemp -d)
  trap 'rm -rf "$all"' EXIT
  jobs=
  for pair in "$@"; do
    make_image "${pair%%=*}" "${pair#*=}" &
    jobs="$jobs $!"
  done
  for job in $jobs; do wait "$job"; done
}

make_image() {
  kind=$1 reference=$2 root=$all/$1
  if docker image inspect "$reference" >/dev/null 2>&1; then return; fi
  shell_files
  "${kind}_files"
  tar -C "$root" -c . | docker import --change 'ENV PATH=/bin:/usr/sbin:/usr/bin' --change "$("${kind}_start")" - "$reference" >/dev/null
  echo "$reference"
}

postgres_start() { echo 'ENTRYPOINT ["/entry"]'; }
mariadb_start() { echo 'ENTRYPOINT ["/entry"]'; }
redis_start() { echo 'CMD ["redis-server"]'; }
nginx_start() { echo 'CMD ["nginx", "-g", "daemon off;"]'; }

# A shell and its tools, as in Alpine.
shell_files() {
  mkdir -p "$root/bin" "$root/etc" "$root/tmp" "$root/run"
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in $(busybox --list); do
    case $name in busybox | nc) ;; *) ln -s busybox "$root/bin/$name" ;; esac
  done
  # Debian's lacks the -z that Alpine's has.
  printf '#!/bin/sh\n[ "$1" = -z ] && shift\nexec busybox nc -w 2 "$@" </dev/null\n' >"$root/bin/nc"
  chmod 755 "$root/bin/nc"
  printf 'root:x:0:0::/:/bin/sh\nnginx:x:101:101::/:/bin/sh\nservice:x:999:999::/:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnginx:x:101:\nservice:x:999:\n' >"$root/etc/group"
}

# Each program, or library, with the libraries it needs.
put() {
  for file in "$@"; do
    echo "$file"
    ldd "$file" 2>/dev/null | sed -n -e 's/.*=> \(\/[^ ]*\) (0x.*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p'
  done | sort -u | while read -r file; do
    mkdir -p "$root${file%/*}"
    cp -L "$file" "$root$file"
  done
}

postgres_files() {
  bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)
  lib=${bin%/bin}/lib share=/usr/share/postgresql/$(basename "${bin%/bin}")
  put "$bin/initdb" "$bin/postgres" "$bin/psql" "$bin/pg_isready" "$lib/dict_snowball.so" "$lib/plpgsql.so" /usr/bin/setpriv
  for name in initdb postgres psql pg_isready; do ln -s "$bin/$name" "$root/bin/$name"; done
  mkdir -p "$root$share/extension" "$root/usr/share/zoneinfo" "$root/var/lib/postgresql/data"
  cp -r "$share/timezonesets" "$share/tsearch_data" "$root$share/"
  cp "$share"/*.* "$root$share/"
  cp "$share"/extension/plpgsql* "$root$share/extension/"
  cp -rL /usr/share/zoneinfo/Etc "$root/usr/share/zoneinfo/"
  script entry <<'SCRIPT'
data=/var/lib/postgresql/data
mkdir -p /run/postgresql
chown 999:999 "$data" /run/postgresql
if [ ! -s "$data/PG_VERSION" ]; then
  printf %s "${POSTGRES_PASSWORD:?}" >/run/postgresql/password
  as_service initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/run/postgresql/password -A scram-sha-256 --no-locale -E UTF8 --no-sync
  rm /run/postgresql/password
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | as_service postgres --single -D "$data" postgres
  echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
fi
exec $as_service postgres -D "$data" -c 'listen_addresses=*' -c unix_socket_directories=/run/postgresql
SCRIPT
}

mariadb_files() {
  put /usr/sbin/mariadbd /usr/bin/mariadb /usr/bin/setpriv
  mkdir -p "$root/usr/share/mysql" "$root/var/lib/mysql"
  cp -r /usr/share/mysql/charsets /usr/share/mysql/english /usr/share/mysql/*.sql "$root/usr/share/mysql/"
  script entry <<'SCRIPT'
data=/var/lib/mysql share=/usr/share/mysql init=/run/mysqld/init.sql
mkdir -p /run/mysqld
chown 999:999 "$data" /run/mysqld
: >"$init"
if [ ! -d "$data/mysql" ]; then
  # It takes a statement on each line, as does an init file.
  { printf '%s;\n' 'CREATE DATABASE mysql' 'USE mysql' 'SET @auth_root_socket=NULL' 'SET @skip_auth_anonymous=1'
    cat $share/*_system_tables.sql $share/*_performance_tables.sql $share/*_system_tables_data.sql
  } | as_service mariadbd --no-defaults --bootstrap --datadir="$data" --lc-messages-dir=$share
  { echo "CREATE DATABASE \`$MARIADB_DATABASE\`;"
    echo "CREATE USER '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';"
    echo "GRANT ALL ON \`$MARIADB_DATABASE\`.* TO '$MARIADB_USER'@'%';"
    echo "CREATE USER healthcheck@'127.0.0.1';"
    echo "ALTER USER root@localhost IDENTIFIED BY '${MARIADB_ROOT_PASSWORD:?}';"
  } >"$init"
fi
exec $as_service mariadbd --no-defaults --datadir="$data" --lc-messages-dir=$share --socket=/run/mysqld/mysqld.sock --skip-name-resolve --init-file="$init"
SCRIPT
  script bin/healthcheck.sh <<'SCRIPT'
exec mariadb --no-defaults -h 127.0.0.1 -u healthcheck -e 'SELECT 1' >/dev/null
SCRIPT
}

redis_files() {
  # The server and its checkers are one program, which goes by its name.
  put /usr/bin/redis-check-rdb /usr/bin/redis-cli
  mv "$root/usr/bin/redis-check-rdb" "$root/usr/bin/redis-server"
  mkdir "$root/data"
  printf '#!/bin/sh\ncd /data && exec /usr/bin/redis-server "$@"\n' >"$root/bin/redis-server"
  chmod 755 "$root/bin/redis-server"
}

nginx_files() {
  put /usr/sbin/nginx
  mkdir -p "$root/etc/nginx/conf.d" "$root/var/log/nginx" "$root/var/lib/nginx" "$root/usr/share/nginx/html"
  cat >"$root/etc/nginx/nginx.conf" <<'CONF'
user nginx;
error_log stderr;
pid /run/nginx.pid;
events {}
http { include conf.d/*.conf; access_log /dev/stdout; }
CONF
  echo 'server { listen 80; root /usr/share/nginx/html; }' >"$root/etc/nginx/conf.d/default.conf"
  echo 'Welcome to nginx!' >"$root/usr/share/nginx/html/index.html"
}

# script NAME: what comes in becomes a program of the image.
script() {
  {
    printf '#!/bin/sh\nset -e\nas_service="/usr/bin/setpriv --reuid=999 --regid=999 --clear-groups"\nas_service() { $as_service "$@"; }\n'
    cat
  } >"$root/$1"
  chmod 755 "$root/$1"
}

main "$@"
