// `oauth2-mock-server`, which misbehaves on request. It writes its issuer as the first line.
// POST /_misbehave takes {redirect, token, metadata}: what to change in the next answers of each kind.
// GET /_requests returns the forms that the token endpoint got.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
await server.start(0, "127.0.0.1");
const { service } = server;
let changes = {};
const requests = [];

service.addRoute("POST", "/_misbehave", (request, response) => {
  changes = JSON.parse(request.body.changes);
  requests.length = 0;
  response.end();
});
service.addRoute("GET", "/_requests", (_request, response) => response.end(JSON.stringify(requests)));
service.on("beforeWellKnownOpenIdConfiguration", (answer) => Object.assign(answer.body, changes.metadata));
service.on("beforeAuthorizeRedirect", ({ url }) => {
  for (const [name, value] of Object.entries(changes.redirect ?? {})) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
});
service.on("beforeResponse", (answer, request) => {
  requests.push(request.body);
  const { statusCode, ...body } = changes.token ?? {};
  answer.statusCode = statusCode ?? answer.statusCode;
  for (const [name, value] of Object.entries(body)) {
    if (value === null) delete answer.body[name];
    else answer.body[name] = value;
  }
});
console.log(server.issuer.url);
