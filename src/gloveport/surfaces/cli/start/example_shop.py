"""Example tools of `gloveport init --example`: a small shop. The examples of all help pages use it."""

from gloveport import ToolError, tool

ORDERS = [
    {"order": 17, "customer": "ada", "status": "open", "total": 84.5},
    {"order": 18, "customer": "bo", "status": "open", "total": 349.0},
    {"order": 19, "customer": "ada", "status": "paid", "total": 1290.0},
]


def orders(status: str | None = None) -> list[dict[str, object]]:
    """List the orders of the shop, all of them or those with a status: open or paid."""
    return [order for order in ORDERS if status in (None, order["status"])]


@tool(writes=True)
def refund(order: int, amount: float) -> str:
    """Refund a part of an order. It writes, so it asks you first."""
    if all(each["order"] != order for each in ORDERS):
        raise ToolError(f"there is no order {order}", code="not-found")
    return f"refunded {amount:.2f} of order {order}"
