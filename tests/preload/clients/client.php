<?php
/*
 * client.php HOW URL MODEL...: one call per model over one reused handle (or one multi), one JSON line each.
 * HOW: exec, copy (a fresh handle by curl_copy_handle each), upload (INFILE), array (multipart), fail (FAILONERROR),
 * multi. CLIENT_HEADERS: lines for each call.
 */
[, $how, $url] = $argv;
$models = array_slice($argv, 3);

function prepare($handle, string $how, string $url, string $model): void
{
    $body = json_encode(['messages' => [['role' => 'user', 'content' => '"model":"x"']], 'model' => $model]);
    curl_setopt_array($handle, [CURLOPT_URL => $url, CURLOPT_RETURNTRANSFER => true, CURLOPT_TIMEOUT => 20]);
    if ($how === 'upload') {
        $file = tmpfile();
        fwrite($file, $body);
        rewind($file);
        curl_setopt_array($handle, [CURLOPT_UPLOAD => true, CURLOPT_CUSTOMREQUEST => 'POST', CURLOPT_INFILE => $file,
            CURLOPT_INFILESIZE => strlen($body)]);
    } elseif ($how === 'array') {
        curl_setopt($handle, CURLOPT_POSTFIELDS, ['file' => new CURLStringFile('sound', 'a.mp3'), 'model' => $model]);
    } else {
        curl_setopt($handle, CURLOPT_POSTFIELDS, $body);
    }
    curl_setopt($handle, CURLOPT_FAILONERROR, $how === 'fail');
    if (getenv('CLIENT_HEADERS')) {
        curl_setopt($handle, CURLOPT_HTTPHEADER, explode("\n", getenv('CLIENT_HEADERS')));
    }
}

function report($handle, $body): void
{
    echo json_encode(['status' => curl_getinfo($handle, CURLINFO_RESPONSE_CODE), 'body' => (string)$body,
        'code' => curl_errno($handle), 'url' => curl_getinfo($handle, CURLINFO_EFFECTIVE_URL),
        'scheme' => curl_getinfo($handle, CURLINFO_SCHEME), 'type' => curl_getinfo($handle, CURLINFO_CONTENT_TYPE)],
        JSON_UNESCAPED_SLASHES), "\n";
}

if ($how === 'multi') {
    $multi = curl_multi_init();
    $handles = [];
    foreach ($models as $model) {
        $handles[] = $handle = curl_init();
        prepare($handle, $how, $url, $model);
        curl_multi_add_handle($multi, $handle);
    }
    do {
        $status = curl_multi_exec($multi, $running);
        if ($running) {
            curl_multi_select($multi, 0.2);
        }
    } while ($running && $status === CURLM_OK);
    $done = 0;
    while (curl_multi_info_read($multi)) {
        $done++;
    }
    foreach ($handles as $handle) {
        report($handle, curl_multi_getcontent($handle));
        curl_multi_remove_handle($multi, $handle);
    }
    fwrite(STDERR, $done === count($models) ? '' : "info_read told of $done\n");
    exit;
}
$handle = curl_init();
foreach ($models as $model) {
    $one = $how === 'copy' ? curl_copy_handle($handle) : $handle;
    prepare($one, $how, $url, $model);
    report($one, curl_exec($one));
}
