// Nothing to do: the orders were cancelled.
