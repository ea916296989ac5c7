// Compose files as people write them pass without a change.

import { after, test } from 'node:test'
import { type Given, policyDesk } from './testing.ts'

const desk = policyDesk()
after(() => desk.close())

const wordpress: Given = {
  text: `
services:
  db:
    image: mariadb:11.4
    restart: unless-stopped
    command: --character-set-server=utf8mb4
    environment:
      MARIADB_DATABASE: wordpress
      MARIADB_USER: wordpress
      MARIADB_PASSWORD_FILE: /run/secrets/db_password
      MARIADB_RANDOM_ROOT_PASSWORD: "1"
    secrets: [db_password]
    volumes: [db:/var/lib/mysql]
    healthcheck:
      test: [CMD, healthcheck.sh, --connect, --innodb_initialized]
      interval: 10s
      start_period: 30s
    networks: [back]
  wordpress:
    image: wordpress:6.7-apache
    restart: unless-stopped
    depends_on:
      db: {condition: service_healthy}
    environment:
      WORDPRESS_DB_HOST: db
      WORDPRESS_DB_PASSWORD_FILE: /run/secrets/db_password
      WORDPRESS_CONFIG_EXTRA: |
        define('WP_CACHE', true); // $$cache
    secrets: [db_password]
    ports: ["\${PORT:-8080}:80"]
    volumes:
      - html:/var/www/html
      - ./uploads.ini:/usr/local/etc/php/conf.d/uploads.ini:ro
      - ./wp-content/themes:/var/www/html/wp-content/themes
    networks: [front, back]
networks:
  front:
  back: {internal: true}
volumes: {db: , html: }
secrets:
  db_password: {file: ./secrets/db_password.txt}
`,
  env: 'PORT=8081\n',
  files: { 'uploads.ini': '', 'secrets/db_password.txt': 'x' },
}

const gitea: Given = {
  text: `
version: "3"
name: blog
x-logging: &logging
  logging: {driver: json-file, options: {max-size: 10m, max-file: "3"}}
services:
  server:
    <<: *logging
    image: gitea/gitea:1.22
    container_name: gitea
    env_file: [.env, {path: local.env, required: false}]
    environment:
      - USER_UID=1000
      - USER_GID=1000
      - GITEA__database__DB_TYPE=postgres
      - GITEA__database__HOST=db:5432
      - GITEA__database__PASSWD=\${DB_PASSWORD:?set it}
    restart: always
    networks: [gitea]
    volumes: ["./gitea:/data"]
    ports: ["3000:3000", "222:22"]
    depends_on: [db]
  db:
    <<: *logging
    image: postgres:17
    shm_size: 128mb
    environment: {POSTGRES_PASSWORD: "\${DB_PASSWORD}"}
    networks: [gitea]
    volumes: ["./postgres:/var/lib/postgresql/data"]
    healthcheck: {test: "pg_isready -U postgres", interval: 5s}
networks:
  gitea: {external: false}
`,
  env: "# written by hand\nDB_PASSWORD='a b$c'\nTZ=Europe/Berlin\nSSH_PORT=222\n",
  files: { '.env': '', 'gitea/x': '', 'postgres/x': '' },
}

const nextcloud: Given = {
  text: `
services:
  redis:
    image: redis:7-alpine
    command: redis-server --requirepass \${REDIS_PASSWORD}
    sysctls: {}
    tmpfs: [/data]
    read_only: true
    cap_drop: [ALL]
    security_opt: [no-new-privileges:true]
  app: &app
    image: nextcloud:30-fpm-alpine
    restart: always
    depends_on: [redis, db]
    environment: {REDIS_HOST: redis, REDIS_HOST_PASSWORD: "\${REDIS_PASSWORD}"}
    volumes: [nextcloud:/var/www/html, ./config:/var/www/html/config, ./data:/var/www/html/data]
    extra_hosts: ["host.docker.internal:host-gateway"]
  cron:
    <<: *app
    entrypoint: /cron.sh
  web:
    build: {context: ./web, args: {VERSION: "1"}}
    volumes_from: [app:ro]
    ports: ["127.0.0.1:8080:80"]
    deploy: {resources: {limits: {cpus: "1.5", memory: 512M}}}
  db:
    image: postgres:17-alpine
    environment: {POSTGRES_PASSWORD_FILE: /run/secrets/pw}
    secrets: [pw]
    volumes: [db:/var/lib/postgresql/data]
volumes: {nextcloud: {name: blog_nextcloud}, db: {labels: {backup: daily}}}
secrets: {pw: {environment: REDIS_PASSWORD}}
`,
  env: 'REDIS_PASSWORD=x\n',
  files: { 'web/Dockerfile': 'FROM nginx\n', 'config/x': '', 'data/x': '' },
}

const immich: Given = {
  text: `
name: blog
services:
  immich-server:
    container_name: immich_server
    image: ghcr.io/immich-app/immich-server:\${IMMICH_VERSION:-release}
    volumes:
      - \${UPLOAD_LOCATION}:/usr/src/app/upload
      - type: bind
        source: ./external
        target: /mnt/external
        read_only: true
    env_file: [.env]
    ports: ["2283:2283"]
    depends_on: [redis, database]
    restart: always
    healthcheck: {disable: false}
  immich-machine-learning:
    container_name: immich_machine_learning
    image: ghcr.io/immich-app/immich-machine-learning:\${IMMICH_VERSION:-release}
    volumes: [model-cache:/cache]
    env_file: [.env]
    restart: always
  redis:
    image: docker.io/valkey/valkey:8-bookworm@sha256:42cba146593a5ea9a622002c1b7cba5da7be248650cbb64ecb9c6c33d29794b1
    healthcheck: {test: redis-cli ping || exit 1}
  database:
    image: ghcr.io/immich-app/postgres:14-vectorchord0.3.0
    environment: {POSTGRES_PASSWORD: "\${DB_PASSWORD}", POSTGRES_INITDB_ARGS: "--data-checksums"}
    volumes: ["\${DB_DATA_LOCATION}:/var/lib/postgresql/data"]
    shm_size: 128mb
    stop_grace_period: 1m
volumes: {model-cache: }
`,
  env: 'UPLOAD_LOCATION=./library\nDB_DATA_LOCATION=./postgres\nDB_PASSWORD=x\nIMMICH_VERSION=v1\n',
  files: { '.env': '' },
}

const monitoring: Given = {
  text: `
include: [db/compose.yaml]
services:
  grafana:
    image: grafana/grafana:11.3.0
    user: "472"
    profiles: [monitoring]
    configs: [{source: datasource, target: /etc/grafana/provisioning/datasources/x.yml}]
    network_mode: service:prometheus
    init: true
  prometheus:
    extends: {file: common.yaml, service: base}
    image: prom/prometheus:v3.0.0
    command: [--config.file=/etc/prometheus/prometheus.yml]
    volumes: [./prometheus.yml:/etc/prometheus/prometheus.yml:ro, prometheus:/prometheus]
    ports: [{target: 9090, published: "9090", host_ip: 127.0.0.1}]
    ulimits: {nofile: 65536}
volumes: {prometheus: }
configs:
  datasource:
    content: "url: http://localhost:9090"
`,
  env: 'COMPOSE_PROFILES=monitoring\n',
  files: {
    'db/compose.yaml':
      'services: {db: {image: "postgres:17", env_file: db.env, volumes: ["./data:/var/lib/postgresql/data"]}}',
    'db/db.env': 'POSTGRES_PASSWORD=x\n',
    'common.yaml': 'services: {base: {restart: unless-stopped, logging: {driver: local}}}',
    'prometheus.yml': '',
  },
}

for (const [name, given] of Object.entries({ wordpress, gitea, nextcloud, immich, monitoring }))
  test(`the compose file of ${name} passes`, async () => {
    await desk.judge(given)
  })
