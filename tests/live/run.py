"""Runs the library against a real Ollama server; see README.md. Ends with "N passed, N failed"."""
import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "bindings" / "python"))

from a3s_code import Agent, EventType, SessionOptions  # noqa: E402

KIT = HERE / "ollama" / "ollama.sh"
results: list[tuple[str, str]] = []


def config(folder: Path, model: str, url: str, provider: str = "ollama") -> str:
    base, key = (url, "") if provider == "ollama" else (url + "/v1", 'apiKey = "not-a-secret" ')
    path = folder / f"{provider}-{model}.acl"
    extra = "reasoning = true" if model == "a3s-think" else "tool_call = false" if model in ("a3s-loop", "a3s-hello") else ""
    path.write_text(
        f'default_model = "{provider}/{model}"\n'
        f'providers "{provider}" {{ baseUrl = "{base}" {key}models "{model}" {{ limit = {{ context = 32768 }} {extra} }} }}\n'
    )
    return str(path)


def check(name: str, problem: str) -> None:
    results.append((name, problem))
    print(f"{'ok  ' if not problem else 'FAIL'}  {name}{': ' + problem if problem else ''}", flush=True)


def acceptance(folder: Path, name: str, path: str) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "first_light.py"), path, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "bindings" / "python")}, capture_output=True, text=True, timeout=300,
    )
    print(done.stdout.strip(), done.stderr.strip(), sep="\n", flush=True)
    check(name, "" if done.returncode == 0 and "status=completed" in done.stdout else f"exit status {done.returncode}")


def events(folder: Path, path: str, prompt: str, stop_after: int = 0):
    with closing(Agent.create(path)) as agent, closing(agent.session(str(folder), SessionOptions())) as session:
        seen, began = [], time.monotonic()
        for event in session.stream(prompt):
            seen.append(event)
            if stop_after and event.type == EventType.TEXT_DELTA and stop_after == sum(e.type == EventType.TEXT_DELTA for e in seen):
                session.cancel()
                began = time.monotonic()
        return seen, session.runs()[-1], session.history(), time.monotonic() - began


def main() -> int:
    url = os.environ.get("A3S_OLLAMA_URL", "")
    own = not url
    if own:
        subprocess.run([str(KIT), "install"], check=True)
        url = subprocess.run([str(KIT), "start"], check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]
    try:
        with tempfile.TemporaryDirectory() as temp:
            run(Path(temp), url)
    finally:
        if own:
            subprocess.run([str(KIT), "stop"], check=False)
    failed = sum(bool(p) for _, p in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def run(folder: Path, url: str) -> None:
    (folder / "main.go").write_text("package main\n\nfunc main() {}\n")
    for model in ("a3s-grep", "a3s-two"):
        acceptance(folder, model, config(folder, model, url))
    acceptance(folder, "a3s-grep, OpenAI wire", config(folder, "a3s-grep", url, "local"))

    seen, last, history, took = events(folder, config(folder, "a3s-loop", url), "go on", stop_after=20)
    end = seen[-1]
    problem = ""
    if end.type != EventType.ERROR or end.payload["code"] != "CANCELLED" or last["status"] != "cancelled":
        problem = f"ended with {end.type} {end.payload}, status {last['status']}"
    elif not history[-1].get("partial") or took > 2:
        problem = f"partial text kept: {history[-1].get('partial')}; cancelled after {took:.1f} s"
    print(f"a3s-loop: {len(seen)} events, then {end.type} {end.payload['code']}, run status {last['status']}, {took * 1000:.0f} ms after cancel()")
    check("a3s-loop, cancelled", problem)

    seen, last, _, _ = events(folder, config(folder, "a3s-think", url), "what is the answer?")
    thought = "".join(e.text or "" for e in seen if e.type == EventType.REASONING_DELTA)
    text = "".join(e.text or "" for e in seen if e.type == EventType.TEXT_DELTA)
    check("a3s-think", "" if thought and "42" in text and last["status"] == "completed" else f"thought {thought!r}, said {text!r}, {last['status']}")

    seen, last, _, _ = events(folder, config(folder, "a3s-badcall", url), "call something")
    ends = [e for e in seen if e.type in (EventType.AGENT_END, EventType.ERROR)]
    check("a3s-badcall", "" if len(ends) == 1 and seen[-1] is ends[0] else f"{len(ends)} terminal events")


if __name__ == "__main__":
    sys.exit(main())
