"""Tools of agent frameworks as tools of a port: the real packages, the framework's own schemas, in the real sandbox."""

from typing import Annotated, Any

import pytest
from agents import function_tool
from langchain_core.tools import InjectedToolArg, StructuredTool
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel
from pydantic_ai import RunContext, ToolReturn
from pydantic_ai import Tool as PydanticTool

from gloveport import Gloveport, OptionError
from gloveport.sources.functions import functions


@langchain_tool(parse_docstring=True)
def area(width: float, height: float = 2) -> float:
    """Return the area of a rectangle.

    Args:
        width: its width, in metres
        height: its height
    """
    return width * height


@langchain_tool
def balance(account: str, owner: Annotated[str, InjectedToolArg] = "ada") -> str:
    """Return the balance of an account."""
    return f"{owner}: {account}"


class Item(BaseModel):
    """A line of an order."""

    name: str
    pieces: int


def total(items: list[Item], discount: int = 0) -> dict[str, int]:
    """Count the pieces of an order."""
    return {"pieces": sum(item.pieces for item in items) - discount}


async def greet(name: str) -> Any:
    """Greet somebody."""
    return ToolReturn(f"hello {name}", metadata={"unseen": True})


async def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@function_tool
def shout(text: str, times: int = 1) -> str:
    """Return the text in capitals."""
    return text.upper() * times


TOOLS = [area, balance, PydanticTool(total), PydanticTool(greet), shout, StructuredTool.from_function(coroutine=fail)]


def test_a_tool_has_the_name_the_description_and_the_schema_of_its_framework() -> None:
    found = {tool.address: tool for tool in functions(TOOLS).tools()}
    assert list(found) == [f"local.{name}" for name in ("area", "balance", "total", "greet", "shout", "fail")]
    assert found["local.area"].description == "Return the area of a rectangle."
    assert found["local.area"].input_schema["properties"]["width"]["description"] == "its width, in metres"
    assert found["local.area"].input_schema["required"] == ["width"]
    assert found["local.total"].input_schema["$defs"]["Item"]["required"] == ["name", "pieces"]
    assert found["local.total"].output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert found["local.shout"].input_schema["required"] == ["text", "times"]  # as the SDK makes it for strict models


def test_what_a_framework_asks_a_person_about_is_a_write() -> None:
    asking = [PydanticTool(total, requires_approval=True), function_tool(needs_approval=True)(greet)]
    assert [tool.writes for tool in functions(asking).tools()] == [True, True]
    assert not any(tool.writes for tool in functions(TOOLS).tools())


def test_a_tool_that_needs_its_framework_is_refused_with_the_reason() -> None:
    def inside(context: RunContext[None], name: str) -> str:
        """Use the context."""
        return name

    off = function_tool(is_enabled=False)(greet)
    for tool, reason in ((PydanticTool(inside), "takes a RunContext"), (off, "is not enabled")):
        with pytest.raises(OptionError, match=reason):
            functions([tool])
    with pytest.raises(OptionError, match="tool name 'my-tool'"):
        functions([StructuredTool.from_function(total, name="my-tool")])
    assert functions([{"mine": StructuredTool.from_function(total, name="my-tool")}]).tools()[0].address == "local.mine"


@pytest.mark.integration
async def test_a_program_calls_them_with_checked_arguments() -> None:
    async with Gloveport(tools=TOOLS, spare=0) as port:
        outcome = await port.run("""
            const failed = await tools.fail({reason: "broken"}).catch((error) => [error.origin, error.message]);
            const wrong = await tools.area({width: "wide" as any}).catch((error) => error.code);
            const stolen = await (tools as any).balance({account: "a", owner: "mallory"}).catch((error) => error.code);
            const called = {type: "tool_call", id: "1", name: "balance", args: {account: "b", owner: "mallory"}};
            const forged = await (tools as any).balance(called).catch((error) => error.code);
            return [await tools.area({width: 3}), await tools.total({items: [{name: "nail", pieces: 5}]}),
                await tools.greet({name: "Ada"}), await tools.shout({text: "hi", times: 2}),
                await tools.balance({account: "a"}), failed, wrong, stolen, forged];
        """)
    assert outcome.error is None, outcome.error
    *values, failed, wrong, stolen, forged = outcome.value
    assert values == [6, {"pieces": 5}, "hello Ada", "HIHI", "ada: a"]
    assert failed == ["tool", "ValueError: broken"]
    assert (wrong, stolen, forged) == ("bad-arguments", "bad-arguments", "bad-arguments")
