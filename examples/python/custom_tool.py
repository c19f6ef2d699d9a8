"""Gives the model a tool of the program: a function with typed parameters."""

from a3s_code import Agent

with Agent.create("agent.acl") as agent, agent.session("workspace") as session:

    @session.register_tool(read_only=True)
    def word_count(text: str, min_letters: int = 1) -> str:
        """Counts the words of a text.

        Args:
            text: the text
            min_letters: count only words with so many letters or more
        """
        count = sum(len(word) >= min_letters for word in text.split())
        return f"{count} words"

    result = session.send("How many long words has the motto?")
    print(result.text)
    print("tool calls:", result.tool_calls_count)
