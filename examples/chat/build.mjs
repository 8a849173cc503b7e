// Builds the page.

import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const file = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  input: file('src/app.jsx'),
  platform: 'browser',
  logLevel: 'silent',
  transform: { define: { 'process.env.NODE_ENV': '"production"' } },
  output: { file: file('dist/app.js'), format: 'esm', minify: true },
});
