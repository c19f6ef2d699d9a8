"""Runs tools for the program itself, without a model."""

from a3s_code import Agent

with Agent.create("agent.acl") as agent, agent.session("workspace") as session:
    print(session.read_file("motto.txt"), end="")
    print(session.grep("cut"), end="")
    for path in session.glob("**/*.py"):
        print(path)
    print(session.ls("src"), end="")

    # A tool that fails is a result, not an exception.
    result = session.tool("read", {"file_path": "absent.txt"})
    print(f"{result.name}: exit code {result.exit_code}: {result.output}")
