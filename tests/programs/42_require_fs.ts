const fs = require("fs");
const orders = await tools.list_orders({ customer: "ada" });
fs.writeFileSync("orders.json", JSON.stringify(orders));
