"""Approvals by MCP elicitation: a client that `[agents.NAME] elicitation = true` trusts asks its user.

In the earlier revision of the protocol, the server sends a request while the call goes on. In the later one, the call
returns what it needs, and the client makes it again with the answer. The state that it carries is sealed and bound to that
call (M12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp_types import (
    CallToolRequestParams,
    ClientCapabilities,
    ElicitationCapability,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.errors import ApprovalError
from gloveport.host.port import Gloveport
from gloveport.large_values import is_large, off_loop
from gloveport.surfaces.agents.tools import AgentAnswer
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.terminal import visible_line
from gloveport.values import to_json

KEY = "approval"
MAX_MESSAGE_CHARS = 20_000
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {"type": "string", "enum": ["approve", "deny"], "description": "Whether these calls may be made."},
        "reason": {"type": "string", "description": "What the program is told if you deny them."},
    },
    "required": ["decision"],
}

Context = ServerRequestContext[Any, Any]


def state_boundary(agent_of: Callable[[Context], str]) -> RequestStateBoundary:
    """Return what seals the state of calls that wait: for one process, one agent and one call."""
    security = RequestStateSecurity.ephemeral(ttl=3600)
    security.bind_principal = agent_of
    return RequestStateBoundary(security, default_audience="gloveport")


class ApprovalElicitation:
    """Lets the user of one client answer the calls of one agent that wait."""

    def __init__(self, port: Gloveport, agent: str, context: Context, params: CallToolRequestParams) -> None:
        self._port = port
        self._agent = agent
        self._context = context
        self._params = params

    @property
    def is_trusted(self) -> bool:
        """Whether this client may ask its user: the settings trust it, and it says that it can."""
        capability = ClientCapabilities(elicitation=ElicitationCapability())
        trusted = self._port.holds_runs and self._port.agent(self._agent).elicitation
        return trusted and self._context.session.check_client_capability(capability)

    @property
    def resumed(self) -> str | None:
        """The run to go on with, if this call carries its user's answer; the answer is given."""
        state, responses = self._params.request_state, self._params.input_responses
        if state is None or not responses or not self.is_trusted:
            return None
        told = orjson.loads(state)  # unsealed: only this server has made it
        response = responses.get(KEY)
        if isinstance(response, ElicitResult):
            self._give(told["seen"], response)
        return told["run"]

    async def settle(
        self, answer: AgentAnswer, resume: Callable[[str], Awaitable[AgentAnswer]]
    ) -> AgentAnswer | InputRequiredResult:
        """Return the answer to a call, after the user was asked as often as it takes, or what the client has to ask."""
        while answer.data.get("status") == "waiting" and self.is_trusted:
            run = str(answer.data["run"])
            waiting = [request for request in self._port.approvals.waiting if request.run == run]
            if not waiting:  # they were answered elsewhere at this moment
                answer = await resume(run)
                continue
            message, seen = await off_loop(self._question, waiting)
            if not seen:
                return answer
            if self._context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                form = ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=SCHEMA))
                state = orjson.dumps({"run": run, "seen": seen}).decode()
                return InputRequiredResult(input_requests={KEY: form}, request_state=state)
            response = await self._context.session.elicit_form(message, SCHEMA, self._context.request_id)
            if not self._give(seen, response):
                return answer
            answer = await resume(run)
        return answer

    def _question(self, waiting: Sequence[ApprovalRequest]) -> tuple[str, dict[str, str]]:
        """Return what the user is asked, and the digests of the calls that it shows in full, by id.

        A call that does not fit is asked about in the next question, or in a terminal if it is too long for any.
        """
        rows: list[str] = []
        seen: dict[str, str] = {}
        room = MAX_MESSAGE_CHARS
        for request in waiting:
            if is_large(request.args, max_bytes=room):
                continue
            row = f"- {self._shown(request)}"
            if len(row) <= room:
                rows.append(row)
                seen[request.id] = request.digest
                room -= len(row)
        count = "1 call" if len(rows) == 1 else f"{len(rows):,} calls"
        first = f"A program of the agent {self._agent} waits for you to approve {count}:"
        advice = dict.fromkeys(line for request in waiting if request.id in seen for line in request.advice)
        return "\n".join([first, *rows, *(f"Advice: {line}" for line in advice)]), seen

    def _shown(self, request: ApprovalRequest) -> str:
        tool = self._port.catalog.find(request.tool)
        path = self._port.catalog.path_of(tool) if tool else request.tool
        because = f" ({request.reason})" if request.reason else ""
        after = f" after {'; '.join(map(str, request.reads))}" if request.reads else ""
        return visible_line(f"tools.{path} {to_text(to_json(dict(request.args)), indented=False)}{because}{after}")

    def _give(self, seen: dict[str, str], response: ElicitResult) -> bool:
        """Give the user's answer to the calls that were shown; return whether there was one."""
        if response.action == "cancel":
            return False
        content = response.content or {}
        approved = response.action == "accept" and content.get("decision") == "approve"
        reason = str(content.get("reason") or "")[:1000]
        try:
            self._port.approvals.answer_group(seen, Answer(approved, f"the user of {self._agent}", reason=reason))
        except ApprovalError:
            return True  # somebody has answered meanwhile, or it has expired: look again
        return True
