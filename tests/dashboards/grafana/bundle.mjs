// node bundle.mjs OUT: what node cannot load as published (ES modules that import from CommonJS) becomes one file.
import { build } from 'esbuild';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
await build({
  entryPoints: [`${here}look.mjs`],
  outfile: process.argv[2],
  bundle: true,
  platform: 'node',
  format: 'cjs',
  mainFields: ['module', 'main'],
  plugins: [
    {
      name: 'without pages',
      setup: (one) => one.onResolve({ filter: /AnnotationQueryEditor/ }, () => ({ path: `${here}nothing.mjs` })),
    },
  ],
  alias: Object.fromEntries(['@grafana/runtime', 'react-use'].map((name) => [name, `${here}nothing.mjs`])),
  logLevel: 'error',
});
