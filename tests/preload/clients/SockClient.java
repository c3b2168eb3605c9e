// SockClient.java …: as sock_python.py, by Java's own HttpClient (11 and later), with its defaults: it asks for HTTP/2
// by Upgrade, and tries a refused connect once more by itself. Its connections stay in its pool, and "Connection" is not
// for the program to set: "close" is a client of its own for the call. Trusts what SSL_CERT_FILE names, if anything.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class SockClient {
    static Duration timeout = Duration.ofSeconds(20);
    static SSLContext trusting;
    static HttpClient kept;

    static HttpClient newClient() {
        return HttpClient.newBuilder().connectTimeout(timeout).sslContext(trusting).build();
    }

    static SSLContext contextOf(String path) throws Exception {
        if (path == null)
            return SSLContext.getDefault();
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(path)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }

    static void call(String url, String model, boolean stream, boolean close) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("Content-Type", "application/json")
            .timeout(timeout.multipliedBy(20))
            .POST(HttpRequest.BodyPublishers.ofString("{\"model\": \"" + model + "\", \"messages\": []}")).build();
        HttpClient client = close ? newClient() : kept;
        try {
            byte[] body;
            int status;
            if (stream) {
                HttpResponse<InputStream> answer = client.send(request, HttpResponse.BodyHandlers.ofInputStream());
                ByteArrayOutputStream all = new ByteArrayOutputStream();
                byte[] piece = new byte[64];
                for (int size; (size = answer.body().read(piece)) >= 0;)
                    all.write(piece, 0, size);
                status = answer.statusCode();
                body = all.toByteArray();
            } else {
                HttpResponse<byte[]> answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray());
                status = answer.statusCode();
                body = answer.body();
            }
            StringBuilder digest = new StringBuilder();
            for (byte b : MessageDigest.getInstance("SHA-256").digest(body))
                digest.append(String.format("%02x", b));
            boolean open = new String(body, "UTF-8").contains("circuit_open");
            System.out.println("status " + status + (open ? " circuit_open " : " - ") + digest.substring(0, 16));
        } catch (HttpTimeoutException error) {
            System.out.println("error timeout");
        } catch (Exception error) {
            System.out.println("error " + kindOf(error));
        }
    }

    static String kindOf(Throwable error) {
        boolean connecting = false;
        for (Throwable one = error; one != null; one = one.getCause()) {
            connecting |= one instanceof ConnectException;
            if (String.valueOf(one.getMessage()).contains("refused"))
                return "refused";
        }
        // Before 21 it loses the word on the way; its ConnectException has no message then.
        return connecting && error.getMessage() == null ? "refused" : "other:" + error.getClass().getName();
    }

    public static void main(String[] words) throws Exception {
        List<String> rest = new ArrayList<>();
        boolean stream = false, close = false;
        for (int i = 0; i < words.length; i++) {
            if (words[i].equals("--timeout"))
                timeout = Duration.ofMillis((long) (Double.parseDouble(words[++i]) * 1000));
            else if (words[i].equals("--stream"))
                stream = true;
            else if (words[i].equals("--close"))
                close = true;
            else
                rest.add(words[i]);
        }
        trusting = contextOf(System.getenv("SSL_CERT_FILE"));
        kept = newClient();
        if (rest.get(0).equals("-")) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            for (String line; (line = lines.readLine()) != null;) {
                List<String> call = Arrays.asList(line.split(" "));
                call(call.get(0), call.get(1), call.contains("stream"), call.contains("close"));
            }
        } else {
            int count = rest.size() > 1 ? Integer.parseInt(rest.get(1)) : 1;
            for (int i = 0; i < count; i++)
                call(rest.get(0), rest.size() > 2 ? rest.get(2) : "m", stream, close);
        }
        System.exit(0);  // the selectors of its clients live on
    }
}
