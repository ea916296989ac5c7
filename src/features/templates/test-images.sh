#!/bin/sh
# Makes images that stand in for official ones, from Debian's own programs on this machine, for tests of the templates:
#   sh test-images.sh postgres=REFERENCE mariadb=REFERENCE redis=REFERENCE nginx=REFERENCE
# They take the same variables and keep their data in the same places. An image that is there already is left alone;
# the references that were made are printed, a line each.
set -eu
umask 022

main() {
  root=$(mktemp -d)
  trap 'rm -rf "$root"' EXIT
  base=fairlead-test/services:1
  for pair in "$@"; do
    kind=${pair%%=*} reference=${pair#*=}
    if docker image inspect "$reference" >/dev/null 2>&1; then continue; fi
    if [ ! -d "$root/bin" ]; then
      fill
      tar -C "$root" -c . | docker import - "$base" >/dev/null
    fi
    image_of "$kind" | DOCKER_BUILDKIT=0 docker build -q -t "$reference" - >/dev/null
    echo "$reference"
  done
  if [ -d "$root/bin" ]; then docker rmi "$base" >/dev/null; fi
}

image_of() {
  echo "FROM $base"
  echo 'ENV PATH=/bin:/usr/sbin:/usr/bin'
  case $1 in
    postgres) printf 'VOLUME /var/lib/postgresql/data\nENTRYPOINT ["/entry", "postgres"]\n' ;;
    mariadb) printf 'VOLUME /var/lib/mysql\nENTRYPOINT ["/entry", "mariadb"]\n' ;;
    redis) printf 'VOLUME /data\nWORKDIR /data\nCMD ["redis-server"]\n' ;;
    nginx) printf 'STOPSIGNAL SIGQUIT\nCMD ["nginx", "-g", "daemon off;"]\n' ;;
  esac
}

fill() {
  pg=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1) pg=${pg%/bin}
  mkdir -p "$root/bin" "$root/etc/nginx/conf.d" "$root/tmp" "$root/run" "$root/data" "$root/var/log/nginx" \
    "$root/var/lib/nginx" "$root/var/lib/mysql" "$root/var/lib/postgresql/data" "$root/usr/share/nginx/html" "$root/usr/share/mysql"
  chmod 1777 "$root/tmp"
  cp "$(command -v busybox)" "$root/bin/busybox"
  for name in $(busybox --list); do [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"; done
  for name in initdb postgres psql pg_isready pg_ctl; do put "$pg/bin/$name"; ln -s "$pg/bin/$name" "$root/bin/$name"; done
  put "$pg/lib/dict_snowball.so" "$pg/lib/plpgsql.so"
  share=/usr/share/postgresql/${pg##*/}
  mkdir -p "$root$share" "$root/usr/share/zoneinfo"
  cp -r "$share/." "$root$share/"
  rm -rf "$root$share/man" "$root$share/extension" && mkdir "$root$share/extension" && cp "$share"/extension/plpgsql* "$root$share/extension/"
  cp -rL /usr/share/zoneinfo/Etc "$root/usr/share/zoneinfo/"
  put /usr/sbin/mariadbd /usr/bin/mariadb /usr/sbin/nginx /usr/bin/redis-cli /usr/bin/setpriv
  # The server and its checkers are one program, which goes by its name.
  put /usr/bin/redis-check-rdb && ln -s redis-check-rdb "$root/usr/bin/redis-server"
  cp -r /usr/share/mysql/charsets /usr/share/mysql/english /usr/share/mysql/*.sql "$root/usr/share/mysql/"
  accounts
  nginx_files
  entry >"$root/entry"
  health >"$root/bin/healthcheck.sh"
  chmod 755 "$root/entry" "$root/bin/healthcheck.sh"
}

# Each program, or library, with the libraries it needs.
put() {
  for file in "$@"; do
    echo "$file"
    ldd "$file" 2>/dev/null | sed -n 's/.*[[:space:]]\(\/[^ ]*\) (0x.*/\1/p'
  done | sort -u | while read -r file; do
    mkdir -p "$root${file%/*}"
    [ -e "$root$file" ] || cp -L "$file" "$root$file"
  done
}

accounts() {
  printf 'root:x:0:0::/:/bin/sh\nnginx:x:101:101::/:/bin/sh\nservice:x:999:999::/:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nnginx:x:101:\nservice:x:999:\n' >"$root/etc/group"
}

nginx_files() {
  cat >"$root/etc/nginx/nginx.conf" <<-'CONF'
	user nginx;
	error_log stderr;
	pid /run/nginx.pid;
	events {}
	http { include conf.d/*.conf; access_log off; }
	CONF
  printf 'server { listen 80; root /usr/share/nginx/html; }\n' >"$root/etc/nginx/conf.d/default.conf"
  echo 'Welcome to nginx!' >"$root/usr/share/nginx/html/index.html"
}

entry() {
  cat <<'ENTRY'
#!/bin/sh
set -e
as_service() { exec setpriv --reuid=999 --regid=999 --clear-groups "$@"; }

postgres() {
  data=/var/lib/postgresql/data
  mkdir -p /run/postgresql
  chown 999:999 "$data" /run/postgresql
  if [ ! -s "$data/PG_VERSION" ]; then
    printf %s "${POSTGRES_PASSWORD:?}" >/run/postgresql/password
    (as_service initdb -D "$data" -U "$POSTGRES_USER" --pwfile=/run/postgresql/password -A scram-sha-256 --no-locale -E UTF8 --no-sync)
    rm /run/postgresql/password
    echo "CREATE DATABASE \"$POSTGRES_DB\"" | (as_service postgres --single -D "$data" postgres)
    echo 'host all all all scram-sha-256' >>"$data/pg_hba.conf"
  fi
  as_service postgres -D "$data" -c 'listen_addresses=*' -c unix_socket_directories=/run/postgresql
}

mariadb() {
  data=/var/lib/mysql init=/run/mysqld/init.sql
  mkdir -p /run/mysqld
  chown 999:999 "$data" /run/mysqld
  : >"$init"
  if [ ! -d "$data/mysql" ]; then
    system=$(ls /usr/share/mysql/*_system_tables.sql) performance=$(ls /usr/share/mysql/*_performance_tables.sql)
    { echo 'CREATE DATABASE mysql; USE mysql; SET @auth_root_socket=NULL;'; cat "$system" "$performance" /usr/share/mysql/*_system_tables_data.sql; } |
      (as_service mariadbd --no-defaults --bootstrap --datadir="$data" --lc-messages-dir=/usr/share/mysql)
    # Written beside each other on lines of their own: a statement each.
    {
      echo "CREATE DATABASE \`$MARIADB_DATABASE\`;"
      echo "CREATE USER '$MARIADB_USER'@'%' IDENTIFIED BY '$MARIADB_PASSWORD';"
      echo "GRANT ALL ON \`$MARIADB_DATABASE\`.* TO '$MARIADB_USER'@'%';"
      echo "CREATE USER healthcheck@'127.0.0.1';"
      echo "ALTER USER root@localhost IDENTIFIED BY '${MARIADB_ROOT_PASSWORD:?}';"
    } >"$init"
  fi
  as_service mariadbd --no-defaults --datadir="$data" --lc-messages-dir=/usr/share/mysql --socket=/run/mysqld/mysqld.sock --skip-name-resolve --init-file="$init"
}

"$@"
ENTRY
}

health() {
  printf '#!/bin/sh\nexec mariadb --no-defaults -h 127.0.0.1 -u healthcheck -e "SELECT 1" >/dev/null\n'
}

main "$@"
