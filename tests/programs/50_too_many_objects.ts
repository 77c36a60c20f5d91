const rows = Array.from({ length: 150_000 }, (_, id) => ({ id }));
return rows;
