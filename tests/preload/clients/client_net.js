// Node's own http and net on a kept connection: client_net.js SHAPE PORT SIZE MODEL...
// Prints the same lines as client_http.py. "raw-*" are net sockets: one line per direction, length and SHA-256.
"use strict";
const crypto = require("crypto");
const http = require("http");
const net = require("net");

const [SHAPE, PORT, SIZE, ...MODELS] = process.argv.slice(2);
const PATH = "/v1/chat/completions";
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

const sha = (data) => crypto.createHash("sha256").update(data).digest("hex");
const bodyOf = (model) =>
    Buffer.from(JSON.stringify({ messages: [{ role: "user", content: "x".repeat(+SIZE) }], model }));

function* pieces(data, size) {
    for (let at = 0; at < data.length; at += size) yield data.subarray(at, at + size);
}

// Each write has left the stream's queue before the next one.
async function writeAll(stream, parts) {
    for (const part of parts) await new Promise((done) => stream.write(part, done));
}

async function send(request, body) {
    switch (SHAPE) {
    case "one-byte":
        return writeAll(request, pieces(body, 1));
    case "large-writes":
        return writeAll(request, pieces(body, 65536));
    case "chunked":
        return writeAll(request, pieces(body, body.length - 4));
    case "corked": // one writev of head and pieces
        request.cork();
        for (const part of pieces(body, Math.ceil(body.length / 3))) request.write(part);
        return process.nextTick(() => request.uncork());
    case "expect":
        return new Promise((done) => request.on("continue", () => done(request.write(body))));
    default:
        request.write(body);
    }
}

function post(model) {
    const body = bodyOf(model);
    const headers = { "Content-Type": "application/json" };
    if (SHAPE !== "chunked") headers["Content-Length"] = body.length;
    if (SHAPE === "expect") headers["Expect"] = "100-continue";
    return new Promise((resolve, reject) => {
        const request = http.request({ host: "127.0.0.1", port: +PORT, path: PATH, method: "POST", agent, headers });
        request.setNoDelay(true);
        request.on("error", reject);
        request.on("response", (answer) => {
            const parts = [];
            answer.on("data", (data) => parts.push(data));
            answer.on("error", reject);
            answer.on("end", () => {
                const data = Buffer.concat(parts);
                console.log(answer.statusCode, data.length, sha(data), answer.headers["x-breaker-state"] || "-");
                if (data.subarray(0, 8).toString() === '{"error"') console.log(data.toString());
                resolve();
            });
        });
        if (SHAPE === "expect") request.flushHeaders();
        send(request, body).then(() => request.end(), reject);
    });
}

// All requests as they come, their answers counted by their known end.
function raw() {
    const requests = MODELS.map((model) => {
        const body = bodyOf(model);
        const head = `POST ${PATH} HTTP/1.1\r\nHost: 127.0.0.1:${PORT}\r\nContent-Length: ${body.length}\r\n\r\n`;
        return Buffer.concat([Buffer.from(head), body]);
    });
    const socket = net.connect({ host: "127.0.0.1", port: +PORT, noDelay: true });
    const got = [];
    return new Promise((resolve, reject) => {
        const finish = () => {
            const received = Buffer.concat(got);
            console.log("received", received.length, sha(received));
            if (received.includes('{"error"')) console.log(received.toString());
            resolve(socket.destroy());
        };
        socket.on("error", reject);
        socket.on("end", finish);
        socket.on("data", (data) => {
            got.push(data);
            if (Buffer.concat(got).toString().split("}\n").length > MODELS.length) finish();
        });
        socket.on("connect", async () => {
            if (SHAPE === "raw-pipelined") return socket.write(Buffer.concat(requests));
            for (const request of requests) {
                socket.cork();
                const headEnd = request.indexOf("\r\n\r\n") + 2;
                for (const [from, to] of [[0, 9], [9, headEnd], [headEnd, request.length - 4], [request.length - 4]])
                    socket.write(request.subarray(from, to));
                socket.uncork();
            }
        });
    });
}

(async () => {
    if (SHAPE.startsWith("raw-")) await raw();
    else
        for (const model of MODELS) await post(model);
    agent.destroy();
})().catch((error) => {
    console.log("error", error.code || error.message);
    process.exitCode = 1;
});
