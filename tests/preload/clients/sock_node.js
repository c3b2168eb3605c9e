// sock_node.js KIND …: as sock_python.py, by Node's fetch (undici) or its http and https modules. KIND: fetch, http.
"use strict";
const crypto = require("crypto");
const http = require("http");
const https = require("https");
const net = require("net");
const readline = require("readline");

// Node 20 walks a name's addresses, 18 only when told so.
if (net.setDefaultAutoSelectFamily)
    net.setDefaultAutoSelectFamily(true);

const kind = process.argv[2];
const options = { timeout: 20, stream: false, close: false };
const rest = [];
for (let i = 3; i < process.argv.length; i++) {
    const word = process.argv[i];
    if (word === "--timeout")
        options.timeout = Number(process.argv[++i]);
    else if (word.startsWith("--"))
        options[word.slice(2)] = true;
    else
        rest.push(word);
}
const milliseconds = options.timeout * 1000;

// fetch has no option for connecting: undici's own agent has. An AbortSignal would end the call, but leave
// the connect pending for the next one to wait for.
let Agent, dispatcher;

async function undici() {
    await fetch("data:,");  // loads it
    Agent = globalThis[Symbol.for("undici.globalDispatcher.1")].constructor;
    return newDispatcher();
}

function newDispatcher() {
    return new Agent({ connect: { timeout: milliseconds }, headersTimeout: milliseconds, bodyTimeout: milliseconds });
}

async function byFetch(url, model, stream, close) {
    dispatcher = dispatcher || await undici();
    const own = close ? newDispatcher() : dispatcher;
    try {
        const answer = await fetch(url, {
            method: "POST", headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ model, messages: [] }), dispatcher: own,
        });
        if (!stream)
            return [answer.status, Buffer.from(await answer.arrayBuffer())];
        const pieces = [];
        for await (const piece of answer.body)
            pieces.push(piece);
        return [answer.status, Buffer.concat(pieces)];
    } finally {
        if (close)
            await own.destroy();  // close() of an old one waits for what has timed out
    }
}

const keeping = { "http:": new http.Agent({ keepAlive: true }), "https:": new https.Agent({ keepAlive: true }) };

function byHttp(url, model, stream, close) {
    return new Promise((resolve, reject) => {
        const body = JSON.stringify({ model, messages: [] });
        const scheme = new URL(url).protocol;
        const request = (scheme === "https:" ? https : http).request(url, {
            method: "POST", agent: close ? false : keeping[scheme], timeout: milliseconds,
            headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) },
        }, async answer => {
            try {
                const pieces = [];
                for await (const piece of answer)
                    pieces.push(piece);
                resolve([answer.statusCode, Buffer.concat(pieces)]);
            } catch (error) {
                reject(error);
            }
        });
        request.on("timeout", () => request.destroy(Object.assign(new Error("too slow"), { code: "ETIMEDOUT" })));
        request.on("error", reject);
        request.end(body);
    });
}

function kindOf(error) {
    const seen = [];
    for (const found = [error]; found.length;) {
        const one = found.pop();
        if (one && !seen.includes(one)) {
            seen.push(one);
            found.push(one.cause, ...(one.errors || []));
        }
    }
    const codes = seen.map(one => String(one.code || one.name));
    if (codes.includes("ECONNREFUSED"))
        return "refused";
    if (codes.some(code => /TIMEDOUT|TIMEOUT|TimeoutError/.test(code)))
        return "timeout";
    return "other:" + codes.join("/");
}

async function call(url, model, stream, close) {
    try {
        const [status, body] = await (kind === "fetch" ? byFetch : byHttp)(url, model, stream, close);
        const digest = crypto.createHash("sha256").update(body).digest("hex").slice(0, 16);
        console.log("status", status, body.includes("circuit_open") ? "circuit_open" : "-", digest);
    } catch (error) {
        console.log("error", kindOf(error));
    }
}

async function main() {
    if (rest[0] === "-") {
        for await (const line of readline.createInterface({ input: process.stdin })) {
            const [url, model, ...how] = line.split(" ");
            await call(url, model, how.includes("stream"), how.includes("close"));
        }
    } else {
        for (let i = 0; i < Number(rest[1] || 1); i++)
            await call(rest[0], rest[2] || "m", options.stream, options.close);
    }
    Object.values(keeping).forEach(agent => agent.destroy());
    if (dispatcher)
        await dispatcher.close();
}

main();
