"""Demo tools: a small shop. Plain Python functions, typed by their signatures; no network needed."""

import asyncio
from typing import TypedDict

from gloveport import ToolError, tool


class Order(TypedDict):
    """One order of a customer."""

    id: str
    city: str
    total: float
    currency: str


ORDERS: dict[str, list[Order]] = {
    "ada": [
        {"id": "A-1001", "city": "Oslo", "total": 1290.0, "currency": "NOK"},
        {"id": "A-1002", "city": "Lisbon", "total": 84.5, "currency": "EUR"},
        {"id": "A-1003", "city": "Tokyo", "total": 15800.0, "currency": "JPY"},
    ],
    "bo": [{"id": "B-2001", "city": "Oslo", "total": 349.0, "currency": "NOK"}],
}
WEATHER = {"Oslo": ("snow", -4), "Lisbon": ("sun", 19), "Tokyo": ("rain", 11)}
EUR_RATES = {"EUR": 1.0, "NOK": 0.0855, "JPY": 0.0061, "USD": 0.92}


def list_customers() -> list[str]:
    """The customers of the shop."""
    return list(ORDERS)


async def list_orders(customer: str) -> list[Order]:
    """The open orders of a customer."""
    await asyncio.sleep(0.12)
    if customer not in ORDERS:
        raise ToolError(f"there is no customer {customer}", code="not-found")
    return ORDERS[customer]


async def get_weather(city: str) -> dict:
    """The weather in a city: sky and temperature in degrees Celsius."""
    await asyncio.sleep(0.2 + len(city) / 20)
    sky, celsius = WEATHER[city]
    return {"city": city, "sky": sky, "celsius": celsius}


def convert(amount: float, source: str, target: str = "EUR") -> float:
    """An amount of money in another currency."""
    return round(amount * EUR_RATES[source] / EUR_RATES[target], 2)


def delivery_days(city: str, sky: str) -> int:
    """How many days a delivery takes, given the weather."""
    return {"sun": 1, "rain": 2, "snow": 4}[sky] + (2 if city == "Tokyo" else 0)


@tool(writes=True)
def refund(order: str, amount: float) -> str:
    """Refund a part of an order, in euros. It writes, so it asks a person first."""
    if all(order != each["id"] for orders in ORDERS.values() for each in orders):
        raise ToolError(f"there is no order {order}", code="not-found")
    return f"refunded {amount:.2f} EUR of {order}"
