return "I may not create orders: shall I ask for permission?";
