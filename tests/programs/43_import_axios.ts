import axios from "axios";
const { data } = await axios.get("https://example.com");
return data;
