"""Issue 2, item 5: the right model, wherever it stands in a request; no model is `-`."""

import json

import pytest

from provider import Answer

# Each body names "right" at its top level and other models elsewhere.
BODIES = {
    "messages first": '{"messages":[{"role":"user","content":"say {\\"model\\":\\"x\\"} and \\\\"}],"model":"right"}',
    "nested before": '{"metadata":{"model":"x","deep":[{"model":"y"}]},"model":"right"}',
    "nested after": '{"model":"right","metadata":{"model":"x"}}',
    "spaces": '{\n\t"messages" : [ ] ,\r\n "model" \t:\n "right" \n}',
    "escaped name": '{"messages":[],"\\u006dodel":"right"}',
    "escaped value": '{"messages":[],"model":"r\\u0069ght"}',
    "unicode prompt": '{"messages":[{"content":"\u00fcml\u00e4ut \U0001f600 \\ud83d\\ude00 \\"model\\": \\"x\\""}],"model":"right"}',
    "numbers and literals": '{"n":-1.5e3,"stream":true,"stop":null,"user":"model","model":"right"}',
    "escaped quote at the end": '{"a":"\\\\","b":"\\"","model":"right"}',
    "anthropic order": '{"max_tokens":9,"messages":[{"content":[{"text":"\\"model\\":\\"x\\""}]}],"model":"right"}',
}
PATHS = {
    "azure": ("/openai/deployments/gpt-4o-eu/chat/completions?api-version=2024-06-01", "gpt-4o-eu"),
    "gemini": ("/v1beta/models/gemini-2.0-flash:generateContent?key=k", "gemini-2.0-flash"),
    "gemini stream": ("/v1beta/models/gemini-2.0-flash:streamGenerateContent?alt=sse", "gemini-2.0-flash"),
    "vertex": ("/v1/projects/p/locations/r/publishers/google/models/gemini-1.5-pro:generateContent", "gemini-1.5-pro"),
    "bedrock": ("/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse", "anthropic.claude-3-haiku-20240307-v1:0"),
    "bedrock arn": ("/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.amazon.nova/invoke",
                    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova"),
    "bedrock bare arn": ("/model/arn:aws:bedrock:us-east-1:123456789012:imported-model/abc/invoke-with-response-stream",
                         "arn:aws:bedrock:us-east-1:123456789012:imported-model/abc"),
    "hugging face": ("/hf-inference/models/org/name", "org/name"),
}


def models_of(breaker_env, provider):
    return {b["model"] for b in breaker_env.breakers().values() if b["model"] and b["host"] == provider.key()}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_model_in_the_body(body, provider, breaker_env):
    assert json.loads(body)["model"] == "right"
    breaker_env.run("curl", "-s", "-d", body, provider.url())
    assert models_of(breaker_env, provider) == {"right"}


@pytest.mark.parametrize("path,model", PATHS.values(), ids=PATHS)
def test_model_in_the_path(path, model, provider, breaker_env):
    provider.answer(Answer(500))
    for _ in range(5):
        breaker_env.run("curl", "-s", "-d", '{"model":"not-this"}', provider.url(path))
    assert models_of(breaker_env, provider) == {model}
    assert breaker_env.state(provider.key(model)) == "open"
    done = breaker_env.run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", "{}", provider.url(path))
    assert done.stdout == b"503" and provider.count() == 5


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/completions",
                                  "/openai/v1/chat/completions", "/api/v1/chat/completions",
                                  "/inference/v1/chat/completions", "/v1/messages", "/v1/chat", "/v2/chat",
                                  "/v2/embed", "/v2/rerank", "/api/chat", "/api/generate", "/api/embed",
                                  "/v1beta/openai/chat/completions"])
def test_paths_whose_body_names_the_model(path, provider, curl, breaker_env):
    assert curl(provider.url(path), "some-model").status == 200
    assert models_of(breaker_env, provider) == {"some-model"}


@pytest.mark.parametrize("body", ["{}", '{"messages":[]}', '{"model":7}', "not json", '["model","x"]', '{"model":'],
                         ids=["empty", "without", "number", "no json", "array", "cut"])
def test_no_model_is_the_dash_of_the_host(body, provider, breaker_env):
    provider.answer(Answer(500))
    for _ in range(7):
        breaker_env.run("curl", "-s", "-d", body, provider.url())
    assert models_of(breaker_env, provider) == {"-"}
    assert provider.count() == 5


def test_model_at_the_end_of_six_megabytes(provider, breaker_env, tmp_path):
    body = tmp_path / "body.json"
    body.write_text('{"messages":[{"content":"' + "QUJD" * 1_500_000 + '"}],"model":"large"}')
    provider.answer(Answer(500))
    for _ in range(6):
        breaker_env.run("curl", "-s", "-d", f"@{body}", provider.url())
    assert provider.count(model="large") == 5 and len(provider.requests[0].body) > 6_000_000
    assert models_of(breaker_env, provider) == {"large"}


@pytest.mark.parametrize("flag", ["-F", "--form-string"])
def test_model_of_a_form(flag, provider, breaker_env, tmp_path):
    (tmp_path / "a.mp3").write_bytes(b"sound" * 1000)
    provider.answer(Answer(500))
    for _ in range(7):
        breaker_env.run("curl", "-s", "-F", f"file=@{tmp_path / 'a.mp3'}", flag, "model=whisper-1",
                        provider.url("/v1/audio/transcriptions"))
    assert provider.count() == 5
    assert models_of(breaker_env, provider) == {"whisper-1"}
