"""Asks a question about a folder of code and prints the answer as it comes.

usage: first_light.py [PROMPT] [--workspace DIR] [--config agent.acl]

Nothing is changed: the policy allows reading only. Without a configuration no model is used;
the workspace is searched for the words of the prompt instead, and the program says so.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from a3s_code import Agent, CodeError, EventType, FileSessionStore, PermissionPolicy, Session, SessionOptions

QUESTION = "Where does this project parse its configuration? Do not change files."
OFFLINE = 'default_model = "offline/search"\n'


def options(workspace: Path) -> SessionOptions:
    """Reading is allowed, everything else is not; the session is kept beside the code."""
    chosen = SessionOptions()
    chosen.planning_mode = "disabled"
    chosen.auto_compact = True
    chosen.permission_policy = PermissionPolicy(
        allow=["read*", "ls*", "glob*", "grep*", "code_*"],
        deny=["write*", "edit*", "patch*", "bash*", "git*"],
        default_decision="deny",
    )
    chosen.session_store = FileSessionStore(str(workspace / ".a3s" / "sessions"))
    return chosen


def ask(session: Session, prompt: str) -> bool:
    """Prints the events of one run; False if it failed."""
    ok = False
    with session.stream(prompt) as events:
        for event in events:
            if event.type == EventType.TEXT_DELTA:
                print(event.text, end="", flush=True)
            elif event.type == EventType.TOOL_START:
                print(f"\n→ {event.tool_name}", flush=True)
            elif event.type == EventType.PERMISSION_DENIED:
                print(f"  not allowed: {event.payload['reason']}", flush=True)
            elif event.type == EventType.ERROR:
                print(f"\nfailed: {event.error}", file=sys.stderr)
            elif event.type == EventType.AGENT_END:
                ok = True
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description="Asks a question about a folder of code. Changes nothing.")
    parser.add_argument("prompt", nargs="?", default=QUESTION, help=f"the question (default: {QUESTION!r})")
    parser.add_argument("--workspace", type=Path, default=Path("."), help="the folder (default: this one)")
    parser.add_argument("--config", type=Path, help="an .acl file that names a model (default: search without a model)")
    args = parser.parse_args()
    workspace = args.workspace.resolve()
    if args.config is None:
        print("no --config: nothing is asked of a model, the workspace is searched for the words of the prompt\n")
    try:
        with Agent.create(str(args.config) if args.config else OFFLINE) as agent:
            with agent.session(str(workspace), options(workspace)) as session:
                ok = ask(session, args.prompt)
                run = session.runs()[-1]
                session.save()
                print(f"\n\nrun {run['id']}: {run['status']}; session {session.session_id} is saved in {workspace / '.a3s' / 'sessions'}")
    except CodeError as err:
        print(f"{err.code}: {err}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
