"""Uses what the test added, through the Python binding."""

from a3s_code import Agent, EventType, SessionOptions, _wait
from a3s_code._wire import dumps, loads
from a3s_code.types import OPERATIONS, EventProbeSeen, AgentProbeAnswer, AgentProbeQuestion, Probed


def look(question: AgentProbeQuestion, context: object) -> AgentProbeAnswer:
    return {"seen": "Python saw " + question["word"]}


event: EventProbeSeen = {"seen": EventType.PROBE_SEEN}
agent = Agent.create('default_model = "offline/search"')
agent.register_extension("probe", {"name": "p", "depth": 2}, {"look": look})
options = SessionOptions()
setattr(options, "probe_depth", 3)
session = agent.session(".", options)
assert OPERATIONS["agent.probe"].blocking
seen: Probed = loads(_wait.call(agent._handle, b"agent.probe", dumps({"name": "p", "word": "hello"}, "agent.probe")))
print(seen["seen"])
session.close()
agent.close()
