#!/usr/bin/env bash
# A PostgreSQL server for tests, in a temporary folder: up starts it and prints its URL, url prints it, down stops it.
# kill ends it as the loss of its machine does, and again starts it anew on what it has left. A NAME is another server beside
# that of this tree. TIDEWAITER_POSTGRES_LISTEN is a further address to listen on, for clients that are not on this machine.
# A server of the system is never touched.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p bin
note=$PWD/bin/postgres${2:+-$2}.folder # where the server is
url="" folder=""
[[ -s $note ]] && folder=$(<"$note")

binaries() { # The newest of those that Debian has installed.
  find /usr/lib/postgresql -path '*/bin/initdb' -printf '%h\n' 2>/dev/null | sort -V | tail -1
}

as_postgres() { # PostgreSQL refuses to run as root.
  if [[ $(id -u) == 0 ]]; then
    (cd / && setpriv --reuid postgres --regid postgres --init-groups env HOME="$folder" "$@")
  else
    "$@"
  fi
}

pid() { # of the server, while it runs
  local pid
  pid=$(head -1 "$folder/data/postmaster.pid" 2>/dev/null) || return 1
  # The number may be that of another process by now.
  [[ $(readlink "/proc/$pid/cwd" 2>/dev/null) == "$folder/data" ]] && echo "$pid"
}

install() {
  [[ $(binaries) ]] && return
  echo "postgres.sh: installing Debian's postgresql" >&2
  # Debian's package would start a cluster of the system.
  apt-get update -qq >&2
  apt-get install -qq -y --no-install-recommends postgresql-common >&2
  sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  apt-get install -qq -y --no-install-recommends postgresql >&2
}

serve() { # serve PORT. Tests crash no machine, so nothing has to reach the disk.
  as_postgres "$(binaries)/pg_ctl" -D "$folder/data" -l "$folder/data/server.log" -w -t 60 -s start -o "-p $1 -k $folder -c fsync=off \
    -c listen_addresses=127.0.0.1${TIDEWAITER_POSTGRES_LISTEN:+,$TIDEWAITER_POSTGRES_LISTEN} -c max_connections=200 -c shared_buffers=32MB" >&2
}

up() {
  if [[ $folder ]] && pid >/dev/null; then
    url
    return
  fi
  install
  local password port
  folder=$(realpath "$(mktemp -d "${TMPDIR:-/tmp}/tidewaiter-postgres.XXXXXX")")
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$password" >"$folder/password"
  [[ $(id -u) == 0 ]] && chown -R postgres "$folder"
  as_postgres "$(binaries)/initdb" -D "$folder/data" -U postgres -A scram-sha-256 --pwfile "$folder/password" -E UTF8 --locale C --no-sync >"$folder/log" 2>&1 ||
    { cat "$folder/log" >&2 && exit 1; }
  if [[ -n ${TIDEWAITER_POSTGRES_LISTEN:-} ]]; then
    echo "host all all all scram-sha-256" >>"$folder/data/pg_hba.conf"
  fi
  # Another process may take a port first: then it is another one.
  for _ in 1 2 3 4 5 6 7 8 9 10; do
    port=$((20000 + RANDOM % 10000))
    if serve "$port"; then
      echo "$folder" >"$note"
      echo "$port" >"$folder/port"
      echo "postgres://postgres:$password@${TIDEWAITER_POSTGRES_LISTEN:-127.0.0.1}:$port/postgres?sslmode=disable" >"$folder/url"
      url
      return
    fi
  done
  cat "$folder/data/server.log" >&2
  rm -rf "$folder"
  exit 1
}

url() { cat "$folder/url"; }

down() {
  [[ $folder ]] || return 0
  local server
  if server=$(pid); then
    kill -INT "$server" # "fast": connections are ended
    for _ in {1..300}; do
      pid >/dev/null || break
      sleep 0.1
    done
  fi
  rm -rf "$folder" "$note"
}

kill_() {
  local server backends
  server=$(pid)
  # Those that serve connections would go on for a moment without it.
  read -ra backends <"/proc/$server/task/$server/children" || true # there is no end of the line
  kill -KILL "$server" "${backends[@]}" 2>/dev/null || true # some of them end by themselves meanwhile
  while pid >/dev/null; do sleep 0.01; done
}

again() { # What the old server has started ends by itself, a moment after it.
  for _ in {1..100}; do
    serve "$(<"$folder/port")" 2>/dev/null && return
    sleep 0.2
  done
  tail -20 "$folder/data/server.log" >&2
  exit 1
}

case ${1:-} in
up | url | down | again) "$1" ;;
kill) kill_ ;;
*)
  echo "usage: $0 up|url|down|kill|again [NAME]" >&2
  exit 2
  ;;
esac
