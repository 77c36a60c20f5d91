// `oidc-provider` with every feature that a sign-in can use. It writes its issuer as the first line.
// POST /_revoke revokes every grant with its tokens, POST /_forget only the access tokens, as an administrator would.
// The document at CLIENT_ID (an https URL that nothing here serves) is the one in CLIENT_DOCUMENT.
import http from "node:http";
import { Provider } from "oidc-provider";

const { CLIENT_ID, CLIENT_DOCUMENT, CLIENT_SECRET } = process.env;
const server = http.createServer((request, response) => handle(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const none = { redirect_uris: [], response_types: [], client_secret: CLIENT_SECRET };
const grants = new Set();
const tokens = new Set();
const counts = { refreshes: 0 };

const provider = new Provider(issuer, {
  clients: [
    { client_id: "robot", grant_types: ["client_credentials"], ...none },
    { client_id: "resource", grant_types: [], ...none },
    {
      client_id: "television",
      token_endpoint_auth_method: "none",
      application_type: "native",
      grant_types: ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
      redirect_uris: [],
      response_types: [],
    },
  ],
  cookies: { keys: ["a key of this test"] },
  clientBasedCORS: () => false,
  fetch: (url, options) =>
    String(url) === CLIENT_ID
      ? Promise.resolve(new Response(CLIENT_DOCUMENT, { headers: { "content-type": "application/json" } }))
      : fetch(url, options),
  features: {
    clientCredentials: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    deviceFlow: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: "read",
        audience: resource,
        accessTokenFormat: "opaque",
        accessTokenTTL: 3600,
      }),
    },
  },
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  rotateRefreshToken: true,
  scopes: ["openid", "offline_access", "read"],
});

provider.on("grant.success", (context) => {
  const { entities, params } = context.oidc;
  if (entities.Grant) grants.add(entities.Grant.jti);
  counts.refreshes += params.grant_type === "refresh_token";
});

provider.on("access_token.saved", (token) => tokens.add(token));

const own = provider.callback();
async function handle(request, response) {
  if (!request.url.startsWith("/_")) return own(request, response);
  if (request.url === "/_forget") for (const token of tokens) await token.destroy();
  if (request.url === "/_revoke") for (const grant of grants) await provider.RefreshToken.revokeByGrantId(grant);
  response.setHeader("content-type", "application/json").end(JSON.stringify(counts));
}
console.log(issuer);
