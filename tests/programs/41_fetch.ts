const res = await fetch("https://api.example.com/weather?city=Oslo");
return await res.json();
