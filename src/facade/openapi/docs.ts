import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { Router } from 'express';

const assets = ['swagger-ui.css', 'swagger-ui-bundle.js', 'favicon-32x32.png'];
const assetDirectory = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

// Swagger UI sets style attributes while it draws; scripts come from here alone.
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const pageBelow = (basePath: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Posthorn API</title>
<link rel="icon" href="${basePath}/docs/favicon-32x32.png">
<link rel="stylesheet" href="${basePath}/docs/swagger-ui.css">
</head>
<body>
<div id="ui"></div>
<script src="${basePath}/docs/swagger-ui-bundle.js"></script>
<script src="${basePath}/docs/start.js"></script>
</body>
</html>
`;

const startBelow = (basePath: string): string =>
  `SwaggerUIBundle({ url: '${basePath}/openapi.json', dom_id: '#ui', deepLinking: true, validatorUrl: null });\n`;

/** `/openapi.json`, and `/docs` with Swagger UI from this server alone, whose addresses begin with `basePath`. The document is made at the first request. */
export function docsRouter(makeDocument: () => Promise<object>, basePath: string): Router {
  const router = Router({ caseSensitive: true });
  let document: Promise<Buffer> | undefined;
  router.get('/openapi.json', async (_request, response) => {
    document ??= makeDocument().then((made) => Buffer.from(JSON.stringify(made)));
    const json = await document;
    response.set('Access-Control-Allow-Origin', '*').type('json').send(json);
  });
  router.use('/docs', (_request, response, next) => {
    response.set({
      'Content-Security-Policy': contentSecurityPolicy,
      'Referrer-Policy': 'no-referrer',
    });
    next();
  });
  router.get('/docs', (_request, response) => {
    response.type('html').send(pageBelow(basePath));
  });
  router.get('/docs/start.js', (_request, response) => {
    response.type('js').send(startBelow(basePath));
  });
  for (const asset of assets) {
    router.get(`/docs/${asset}`, (_request, response) => {
      response.set('Cache-Control', 'public, max-age=86400').sendFile(asset, { root: assetDirectory });
    });
  }
  return router;
}
