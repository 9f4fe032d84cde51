/**
 * The files of a new third-party plugin: the smallest one that does something, fulfils the contract and can
 * be tested.
 */

export type Language = 'js' | 'ts';

/** Contents by file name. */
export function scaffold(
  name: string,
  hostVersion: string,
  language: Language = 'js',
): Readonly<Record<string, string>> {
  const manifest = {
    name,
    version: '0.1.0',
    description: `The plugin ${name} for Mountkeeper.`,
    type: 'module',
    // By this word others find it.
    keywords: ['mountkeeper-plugin'],
    exports: `./index.${language}`,
    scripts: { test: 'node --test', ...(language === 'ts' && { types: 'tsc' }) },
    peerDependencies: { mountkeeper: `^${hostVersion}` },
    // All that the daemon knows about the plugin while it is off.
    mountkeeper: { apiVersion: 1, permissions: ['read-status'] },
    // The host provides it: npm must not install it.
    peerDependenciesMeta: { mountkeeper: { optional: true } },
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    [`index.${language}`]: entry(name),
    ...(language === 'ts' && { 'tsconfig.json': TSCONFIG }),
    'README.md': readme(name),
    'sample.toml': `[plugins.${name}]\nenabled = true\ngreeting = "hello"\n`,
    'contract.test.js': `import { contractSuite } from 'mountkeeper/testing';\n\ncontractSuite(import.meta.dirname);\n`,
  };
}

/** What Mountkeeper loads without a build is checked as Node's own stripping of types wants it. */
const TSCONFIG = `{
  "compilerOptions": {
    "target": "es2023",
    "module": "nodenext",
    "strict": true,
    "noEmit": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "allowImportingTsExtensions": true,
    "types": ["node"]
  },
  "include": ["*.ts"]
}
`;

function entry(name: string): string {
  return `import { definePlugin, html, Joi } from 'mountkeeper';

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  apiVersion: 1,
  description: 'The plugin ${name} for Mountkeeper.',
  config: {
    schema: Joi.object({
      greeting: Joi.string()
        .default('hello')
        .meta({ tier: 'live' })
        .description('What is shown, and said when a share is mounted.'),
    }),
  },
  // Only declare here: what is declared starts when the plugin is activated, and ends when it is
  // switched off.
  register(ctx) {
    ctx.tab({
      id: '${name}',
      place: 'card',
      title: '${name}',
      render: () => html\`<p>\${ctx.config.greeting}</p>\`,
    });
    ctx.tap('afterMount', (share) => {
      ctx.log.info({ share }, ctx.config.greeting);
    });
    ctx.route({ method: 'GET', path: '/greeting', handler: () => ({ greeting: ctx.config.greeting }) });
  },
});
`;
}

function readme(name: string): string {
  return `# ${name}

Shows a greeting on the dashboard, and says it whenever a share is mounted.

## Configuration

\`greeting\` in \`[plugins.${name}]\`: what is said. See \`sample.toml\`.

## What it contributes

A line in the log after each mount, and \`GET /ext/${name}/greeting\`.

## Failure and advice

It depends on nothing. When it is \`invalid\` or \`failed\`, \`mountkeeper plugin list\` says why.
`;
}
