const rows = Array.from({ length: 150_000 }, (_, id) => ({ id }));
return { count: rows.length, first: rows.slice(0, 3) };
