"""The commands of `gloveport policy`: their arguments and help texts, as in `commands`."""

from __future__ import annotations

from typing import Any

import click

from gloveport.surfaces.cli.help import PageCommand, PageGroup
from gloveport.surfaces.cli.options import COLOR, JSON, YES, OneOf, complete_tools, view_options

policy = PageGroup("policy", help="Show, explain and change the rules: which calls are allowed, ask or are denied.")


@policy.command(
    "list",
    cls=PageCommand,
    help="List the rules and budgets in force, the preset, and what is ignored.",
    examples=("gloveport policy list",),
)
@view_options
def policy_list(**view: Any) -> int:
    """List the rules."""
    from gloveport.surfaces.cli.policy.listing import list_rules_command
    from gloveport.surfaces.cli.view import ViewOptions

    return list_rules_command(ViewOptions(**view))


@policy.command(
    "explain",
    cls=PageCommand,
    help="Explain the decision on a call: which rule wins, and how to change it.",
    examples=(
        "gloveport policy explain shop.refund",
        "gloveport policy explain https://api.example.com/v1/items",
        """gloveport policy explain shop.refund --args '{"order": 17, "amount": 500}' --as default""",
    ),
)
@click.argument("path", metavar="TOOL", shell_complete=complete_tools)
@click.option("--args", "args", metavar="JSON", help="The arguments of the call, or @file.")
@click.option("--as", "agent", metavar="AGENT", help="The agent that makes the call.")
@view_options
def policy_explain(path: str, args: str | None, agent: str | None, **view: Any) -> int:
    """Explain a decision."""
    from gloveport.surfaces.cli.policy.explain import explain_command
    from gloveport.surfaces.cli.view import ViewOptions

    return explain_command(ViewOptions(**view), path, args, agent)


@policy.command(
    "set",
    cls=PageCommand,
    help="Set or remove a rule: shows the change to gloveport.toml, asks, and writes it.",
    examples=(
        "gloveport policy set allow 'shop.*'",
        "gloveport policy set ask shop.refund --when 'args.amount > 100' --reason 'large refunds'",
        "gloveport policy set allow 'shop.*' --remove",
    ),
)
@click.argument("verdict", type=OneOf(["allow", "ask", "deny"], "verdict"), metavar="allow|ask|deny")
@click.argument("pattern", metavar="PATTERN")
@click.option("--agent", metavar="NAME", help="Only for the calls of this agent, or of those that a pattern covers.")
@click.option("--when", metavar="EXPR", help="Only for calls whose arguments fit, such as 'args.amount > 100'.")
@click.option("--reason", metavar="TEXT", help="Why; agents and people read it.")
@click.option("--remove", is_flag=True, help="Remove this rule.")
@click.option("--user", is_flag=True, help="Change your own file, not the project's.")
@YES
@JSON
@COLOR
def policy_set(**options: Any) -> int:
    """Change the rules."""
    from gloveport.surfaces.cli.policy.set_rule import SetRuleOptions, set_rule_command

    return set_rule_command(SetRuleOptions(**options))
