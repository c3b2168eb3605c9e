#!/bin/bash
# What a nightly job does: every way in which a script starts its programs. Each prints NAME STATUS.
# batch.sh URL PYTHON CLIENTS
url=$1 python=$2 clients=$3
body='{"messages":[],"model":"m"}'
call() { curl -s -o /dev/null -w "$1 %{http_code}\n" -d "$body" "$url"; }
status() { sed -n 's/.*"status": *\([0-9]*\).*/'"$1"' \1/p'; }

call plain
call pipe | cat
(call subshell)
echo "$(call substitution)"
call background &
wait
timeout 20 curl -s -o /dev/null -w 'timeout %{http_code}\n' -d "$body" "$url"
env VAR=x curl -s -o /dev/null -w 'env %{http_code}\n' -d "$body" "$url"
nice curl -s -o /dev/null -w 'nice %{http_code}\n' -d "$body" "$url"
(cd / && exec curl -s -o /dev/null -w 'exec %{http_code}\n' -d "$body" "$url")
seq 8 | xargs -P8 -I{} curl -s -o /dev/null -w 'xargs %{http_code}\n' -d "$body" "$url"
echo "$body" | curl -s -o /dev/null -w 'stdin %{http_code}\n' -d @- "$url"
find /dev/null -exec curl -s -o /dev/null -w 'find %{http_code}\n' -d "$body" "$url" \;
php "$clients/client.php" exec "$url" m | status php
"$python" "$clients/client_pycurl.py" exec "$url" m | status python
php -r 'system($argv[1]);' "curl -s -o /dev/null -w 'php-system %{http_code}\n' -d '$body' '$url'"
"$python" -c 'import subprocess, sys; subprocess.run(sys.argv[1:])' \
    curl -s -o /dev/null -w 'python-subprocess %{http_code}\n' -d "$body" "$url"
setsid -w curl -s -o /dev/null -w 'setsid %{http_code}\n' -d "$body" "$url"
env -i /usr/bin/curl -s -o /dev/null -w 'cleared %{http_code}\n' -d "$body" "$url"
