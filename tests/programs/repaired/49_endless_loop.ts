const seen: number[] = [];
while (seen.length < 10) seen.push(seen.length);
return seen;
