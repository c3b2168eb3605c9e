<?php
/* stream_curl.php HOW URL MODEL: one call, by exec or in a multi; one JSON line of status and body (bytes as latin-1). */
[, $how, $url, $model] = $argv;
$body = '';
$handle = curl_init($url);
curl_setopt_array($handle, [
    CURLOPT_POSTFIELDS => json_encode(['messages' => [], 'model' => $model]),
    CURLOPT_WRITEFUNCTION => function ($_, $piece) use (&$body) {
        $body .= $piece;
        return strlen($piece);
    },
]);
if ($how === 'multi') {
    $multi = curl_multi_init();
    curl_multi_add_handle($multi, $handle);
    do {
        curl_multi_exec($multi, $running);
        if ($running) {
            curl_multi_select($multi, 0.2);
        }
    } while ($running);
    $code = curl_multi_info_read($multi)['result'];
    curl_multi_remove_handle($multi, $handle);
} else {
    curl_exec($handle);
    $code = curl_errno($handle);
}
echo json_encode(['status' => curl_getinfo($handle, CURLINFO_RESPONSE_CODE), 'code' => $code,
    'body' => preg_replace_callback('/[\x80-\xff]/', fn ($m) => chr(0xc0 | ord($m[0]) >> 6) .
        chr(0x80 | ord($m[0]) & 0x3f), $body)]), "\n";
