/**
 * The files of a new third-party plugin: the smallest one that does something, keeps the contract and can be
 * tested.
 */

export function scaffold(name: string, hostVersion: string): Readonly<Record<string, string>> {
  const manifest = {
    name,
    version: '0.1.0',
    description: `The plugin ${name} for Mountkeeper.`,
    type: 'module',
    exports: './index.js',
    scripts: { test: 'node --test' },
    peerDependencies: { mountkeeper: `^${hostVersion}` },
    // All that is known of the plugin while it is off.
    mountkeeper: { apiVersion: 1 },
    // The host brings it: npm must not look for it.
    peerDependenciesMeta: { mountkeeper: { optional: true } },
  };
  return {
    'package.json': `${JSON.stringify(manifest, null, 2)}\n`,
    'index.js': entry(name),
    'README.md': readme(name),
    'sample.toml': `[plugins.${name}]\nenabled = true\ngreeting = "hello"\n`,
    'contract.test.js': `import { contractSuite } from 'mountkeeper/testing';\n\ncontractSuite(import.meta.dirname);\n`,
  };
}

function entry(name: string): string {
  return `import { definePlugin, Joi } from 'mountkeeper';

export default definePlugin({
  name: '${name}',
  version: '0.1.0',
  apiVersion: 1,
  description: 'The plugin ${name} for Mountkeeper.',
  config: {
    schema: Joi.object({
      greeting: Joi.string().default('hello').meta({ tier: 'live' }).description('What is said when a share is mounted.'),
    }),
  },
  // Declares only: what is declared here, comes to life when the plugin is activated and goes when it is
  // switched off.
  register(ctx) {
    ctx.tap('afterMount', (share) => {
      ctx.log.info({ share }, ctx.config.greeting);
    });
    ctx.route({ method: 'GET', path: '/api/${name}', handler: () => ({ greeting: ctx.config.greeting }) });
  },
});
`;
}

function readme(name: string): string {
  return `# ${name}

Says hello whenever a share is mounted.

## Configuration

\`greeting\` in \`[plugins.${name}]\`: what is said. See \`sample.toml\`.

## What it contributes

A line in the log after each mount, and \`GET /api/${name}\`.

## Failure and advice

It depends on nothing. When it is \`invalid\` or \`failed\`, \`mountkeeper plugin list\` says why.
`;
}
