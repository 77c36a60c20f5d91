Sure! This sums the orders in euros.

```python
import asyncio
orders = await tools.list_orders(customer="ada")
euros = await asyncio.gather(*[tools.convert(amount=o["total"], source=o["currency"]) for o in orders])
round(sum(euros), 2)
```
