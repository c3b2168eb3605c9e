#!/bin/bash
# sock_wget.sh …: as sock_python.py, by wget. COUNT calls are one wget with the URL so many times, which keeps its
# connection; a line of stdin is a wget of its own. Trusts what SSL_CERT_FILE names, if anything.
timeout=20 count=1 model=m
trust=(${SSL_CERT_FILE:+--ca-certificate="$SSL_CERT_FILE"})
how=(--no-http-keep-alive)
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --timeout) timeout=$2; shift ;;
    --stream | --close) ;;
    esac
    shift
done
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

# One wget. It begins each URL with a line of dashes; the last thing that it says of one is what became of it (a name's
# first address may have refused before). The answers are files, numbered in order.
calls() { # MODEL URL...
    local model=$1 number=0 told= file line
    shift
    rm -f "$directory"/*
    wget -S --progress=dot --tries=1 --timeout="$timeout" --content-on-error --header='Content-Type: application/json' \
        "${trust[@]}" "${how[@]}" --post-data="{\"model\": \"$model\", \"messages\": []}" -P "$directory/" "$@" >"$directory/said" 2>&1
    while IFS= read -r line; do
        case $line in
        --*://*) $told; told='echo error other:nothing' ;;
        '  HTTP/1.1 '*)
            line=${line#  HTTP/1.1 } file="$directory/${1##*/}"
            [ "$number" = 0 ] || file+=.$number
            number=$((number + 1))
            told="tell ${line%% *} $file"
            ;;
        *'refused.') told='echo error refused' ;;
        *'timed out.'*) told='echo error timeout' ;;
        esac
    done <"$directory/said"
    $told
}

tell() { # STATUS FILE
    local mark=- digest
    [ -e "$2" ] || { echo "error other:no-body"; return; }
    ! grep -q circuit_open "$2" || mark=circuit_open
    read -r digest _ < <(sha256sum <"$2")
    echo "status $1 $mark ${digest:0:16}"
}

if [ "$1" = - ]; then
    while read -r url model _; do
        calls "$model" "$url"
    done
    exit
fi
url=$1 count=${2-1} model=${3-m}
how=() urls=()
for ((i = 0; i < count; i++)); do urls+=("$url"); done
calls "$model" "${urls[@]}"
