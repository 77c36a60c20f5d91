from dataclasses import dataclass, asdict
from statistics import mean

@dataclass
class Summary:
    customer: str
    mean_total: float

orders = await tools.list_orders(customer="ada")
asdict(Summary("ada", round(mean(o["total"] for o in orders), 2)))
