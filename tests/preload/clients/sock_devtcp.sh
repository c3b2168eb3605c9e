#!/bin/bash
# sock_devtcp.sh …: as sock_python.py, by bash's /dev/tcp and its own read and printf. No child touches the
# connection: it would run without us. --timeout S kills the shell that makes the call, which is all that bash can do;
# that shell has no trap, or it would tidy up before it dies.
LC_ALL=C
timeout= stream= close=
if [ -z "$SAID" ]; then
    SAID=$(mktemp) || exit 1
    trap 'rm -f "$SAID"' EXIT
fi
arguments=()
while [ $# -gt 0 ]; do
    case $1 in
    --timeout) timeout=$2; shift ;;
    --stream) stream=stream ;;
    --close) close=close ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
set -- "${arguments[@]}"
kept=


line() { # reads one without its end; fails at the end of the connection
    IFS= read -r -u 3 "$1" || return
    printf -v "$1" %s "${!1%$'\r'}"
}

read_answer() { # -> status, body; keeps or closes
    local word piece size length= chunked= last=
    body= status=
    line word || return
    status=${word#* } status=${status%% *}
    while line word && [ -n "$word" ]; do
        piece=${word#*:} piece=${piece# } piece=${piece,,}
        case ${word,,} in
        content-length:*) length=$piece ;;
        transfer-encoding:*) chunked=1 ;;
        connection:*) [ "$piece" != close ] || last=1 ;;
        esac
    done
    if [ -n "$chunked" ]; then
        while line word && size=$((16#$word)) && [ "$size" -gt 0 ]; do
            IFS= read -r -N "$size" -u 3 piece || return
            body+=$piece
            line word || return
        done
        line word
    elif [ -n "$length" ]; then
        [ "$length" = 0 ] || IFS= read -r -N "$length" -u 3 body || return
    else
        last=1
        while IFS= read -r -N 1 -u 3 piece; do body+=$piece; done
    fi
    [ -z "$last" ] || hang_up
}

hang_up() {
    exec 3>&-
    kept=
}

call() { # URL MODEL [stream] [close]
    local where=${1#http://} path body status mark=- digest text
    [[ " $3 $4 " == *" close "* ]] && close=close || close=
    path=/${where#*/} where=${where%%/*}
    if [ -z "$kept" ] || [ -n "$close" ] || [ "$kept" != "$where" ]; then
        [ -z "$kept" ] || hang_up
        if ! { exec 3<>"/dev/tcp/${where%:*}/${where##*:}"; } 2>"$SAID"; then
            text=$(<"$SAID")
            case $text in
            *refused*) echo 'error refused' ;;
            *'timed out'*) echo 'error timeout' ;;
            *) echo "error other:${text//[$' \n']/_}" ;;
            esac
            return
        fi
        kept=$where
    fi
    body="{\"model\": \"$2\", \"messages\": []}"
    printf 'POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %s\r\n%s\r\n%s' "$path" \
        "$where" "${#body}" "${close:+$'Connection: close\r\n'}" "$body" >&3
    if ! read_answer; then
        [ -z "$kept" ] || hang_up
        echo 'error other:closed'
        return
    fi
    [ -z "$close" ] || [ -z "$kept" ] || hang_up
    [[ $body != *circuit_open* ]] || mark=circuit_open
    read -r digest _ < <(printf %s "$body" | sha256sum)
    echo "status $status $mark ${digest:0:16}"
}

limited() { # the same in a shell of its own that has so long
    [ -n "$timeout" ] || { call "$@"; return; }
    SAID=$SAID timeout "$timeout" bash "$0" ${close:+--close} "$1" 1 "$2"
    [ $? != 124 ] || echo 'error timeout'
}

if [ "$1" = - ]; then
    while read -r url model how; do
        limited "$url" "$model" $how
    done
else
    for ((i = 0; i < ${2-1}; i++)); do limited "$1" "${3-m}" $stream $close; done
fi
