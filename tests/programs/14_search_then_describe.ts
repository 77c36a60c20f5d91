const found = await tools.search("money in another currency");
const { typescript } = await tools.describe(found[0].path);
return { path: found[0].path, documented: typescript.includes("amount: number") };
