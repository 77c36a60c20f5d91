return await tools.shop.orders.create({ customer: "ada", items: [{ name: "cup", price: 4 }] });
