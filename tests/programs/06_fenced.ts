Here is the program that does it:

```typescript
const total: number = await tools.convert({ amount: 100, source: "USD", target: "NOK" });
return total;
```

It converts 100 dollars.
