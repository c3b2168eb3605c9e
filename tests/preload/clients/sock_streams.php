<?php
/*
 * sock_streams.php …: as sock_python.py, by PHP's http:// streams. They know no kept connections: every call is over
 * one of its own.
 */
$options = ['timeout' => 20.0, 'stream' => false];
$rest = [];
for ($i = 1; $i < $argc; $i++) {
    if ($argv[$i] === '--timeout') {
        $options['timeout'] = (float)$argv[++$i];
    } elseif (str_starts_with($argv[$i], '--')) {
        $options[substr($argv[$i], 2)] = true;
    } else {
        $rest[] = $argv[$i];
    }
}

function read_whole(string $url, $context, bool $stream): array
{
    if (!$stream) {
        $body = @file_get_contents($url, false, $context);
        return [$body, $http_response_header ?? []];
    }
    $file = @fopen($url, 'r', false, $context);
    if (!$file) {
        return [false, $http_response_header ?? []];
    }
    for ($body = ''; !feof($file);) {
        $body .= fread($file, 64);
    }
    fclose($file);
    return [$body, $http_response_header];
}

function call(string $url, string $model, bool $stream, float $timeout): void
{
    error_clear_last();
    $context = stream_context_create(['http' => ['method' => 'POST', 'header' => 'Content-Type: application/json',
        'content' => json_encode(['model' => $model, 'messages' => []]), 'timeout' => $timeout,
        'ignore_errors' => true, 'protocol_version' => 1.1]]);
    [$body, $head] = read_whole($url, $context, $stream);
    if ($body === false || !$head) {
        $text = error_get_last()['message'] ?? 'nothing said';
        $kind = str_contains($text, 'refused') ? 'refused' :
            (str_contains($text, 'timed out') ? 'timeout' : 'other:' . str_replace(' ', '_', $text));
        echo "error $kind\n";
        return;
    }
    $mark = str_contains($body, 'circuit_open') ? 'circuit_open' : '-';
    echo 'status ', explode(' ', $head[0])[1], " $mark ", substr(hash('sha256', $body), 0, 16), "\n";
}

if ($rest[0] === '-') {
    while (($line = fgets(STDIN)) !== false) {
        $words = explode(' ', trim($line));
        call($words[0], $words[1], in_array('stream', $words), $options['timeout']);
    }
} else {
    for ($i = 0; $i < (int)($rest[1] ?? 1); $i++) {
        call($rest[0], $rest[2] ?? 'm', $options['stream'], $options['timeout']);
    }
}
