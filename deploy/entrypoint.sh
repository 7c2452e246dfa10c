#!/bin/sh
# Starts goat-mcp in a container: at the container's own address, with the secrets as private files.
#
#   goat-mcp-entrypoint serve [OPTIONS]   serve HTTP at GOAT_ADDRESS:GOAT_PORT (the container's first address, and 8765)
#   goat-mcp-entrypoint healthcheck       exit 0 if that server answers
#   goat-mcp-entrypoint ANYTHING ELSE     goat-mcp ANYTHING ELSE
set -eu

port=${GOAT_PORT:-8765}

# Sets $host, as it stands in URLs.
find_address() {
    address=${GOAT_ADDRESS:-$(hostname -i | cut -d' ' -f1)}
    case $address in *:*) host="[$address]" ;; *) host=$address ;; esac
}

# Mounted secrets are links, or files that a group may read: goat-mcp takes neither. /run/goat-mcp is memory.
private() {
    (umask 077 && cat "$1" >"/run/goat-mcp/$2.new")
    mv "/run/goat-mcp/$2.new" "/run/goat-mcp/$2"
}

case ${1:-} in
serve)
    shift
    find_address
    secrets=${GOAT_SECRETS:-/run/secrets}
    [ ! -e "$secrets/goat-token" ] || {
        private "$secrets/goat-token" token
        set -- --token-file /run/goat-mcp/token "$@"
    }
    [ ! -e "$secrets/goat-state-key" ] || {
        GOAT_MCP_STATE__KEY=$(cat "$secrets/goat-state-key")
        export GOAT_MCP_STATE__KEY
    }
    [ ! -e "$secrets/goat-state-url" ] || {
        GOAT_MCP_STATE__URL=$(cat "$secrets/goat-state-url")
        export GOAT_MCP_STATE__URL
    }
    [ ! -e "$secrets/goat-metrics-token" ] || {
        private "$secrets/goat-metrics-token" metrics-token
        export GOAT_MCP_METRICS__LISTEN="$host:${GOAT_METRICS_PORT:-9464}" GOAT_MCP_METRICS__TOKEN_FILE=/run/goat-mcp/metrics-token
    }
    exec goat-mcp serve --http "$host:$port" "$@"
    ;;
healthcheck)
    find_address
    exec python3 -c "import sys, urllib.request as r; r.urlopen(sys.argv[1], timeout=2)" "http://$host:$port/healthz"
    ;;
*)
    exec goat-mcp "$@"
    ;;
esac
