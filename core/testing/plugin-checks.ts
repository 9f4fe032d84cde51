/**
 * Checks of every plugin folder besides its code: a README with the known sections, documented keys and a
 * valid sample. Each check returns sentences; none means that all is well.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'smol-toml';
import type { Secrets } from '../contract/config.ts';
import type { Plugin } from '../contract/plugin.ts';
import { createConfigService } from '../config/service.ts';
import type { ContributionEntry } from '../config/schema/schema.ts';
import type { CheckServices } from '../config/checks/plugin-checks.ts';
import type { Logger } from '../contract/platform.ts';

const SECTIONS = ['## Configuration', '## What it contributes', '## Failure and advice'];

export async function readmeProblems(folder: string, name: string): Promise<readonly string[]> {
  // Said below.
  const text = await readFile(path.join(folder, 'README.md'), 'utf8').catch(() => undefined);
  if (text === undefined) return ['README.md is missing'];
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  const problems: string[] = [];
  if (lines[0] !== `# ${name}`) problems.push(`README.md must begin with "# ${name}"`);
  if (lines[1] === undefined || lines[1].startsWith('#'))
    problems.push('README.md lacks the summary, one line under its title');
  const headings = lines.filter((line) => SECTIONS.includes(line));
  if (headings.join() !== SECTIONS.join())
    problems.push(
      `README.md must have the sections ${SECTIONS.map((one) => `"${one}"`).join(', ')}, in this order`,
    );
  const empty = SECTIONS.filter((section) => headings.includes(section) && !isFilled(lines, section));
  return [...problems, ...empty.map((section) => `README.md says nothing under "${section}"`)];
}

function isFilled(lines: readonly string[], section: string): boolean {
  const next = lines[lines.indexOf(section) + 1];
  return next !== undefined && !next.startsWith('## ');
}

interface KeyDescription {
  readonly type?: string;
  readonly flags?: { readonly description?: string; readonly default?: unknown; readonly presence?: string };
  readonly metas?: readonly { readonly tier?: string }[];
  readonly keys?: Readonly<Record<string, KeyDescription>>;
  readonly items?: readonly KeyDescription[];
}

/**
 * A key needs a description and a tier (its own or an ancestor's), and a default unless it is required or
 * explicitly optional.
 */
export function keyProblems(plugin: Plugin): readonly string[] {
  const { schema, share, section = `plugins.${plugin.name}` } = plugin.config ?? {};
  return [
    ...(schema ? tableProblems(schema.describe() as KeyDescription, section, undefined) : []),
    ...(share ? tableProblems(share.describe() as KeyDescription, 'shares[]', undefined) : []),
  ];
}

function tierOf(node: KeyDescription, inherited: string | undefined): string | undefined {
  return node.metas?.findLast((meta) => meta.tier !== undefined)?.tier ?? inherited;
}

function tableProblems(table: KeyDescription, at: string, inherited: string | undefined): string[] {
  return Object.entries(table.keys ?? {}).flatMap(([name, key]) =>
    oneKeyProblems(key, `${at}.${name}`, tierOf(table, inherited)),
  );
}

function oneKeyProblems(key: KeyDescription, at: string, inherited: string | undefined): string[] {
  const tier = tierOf(key, inherited);
  const inner = key.keys
    ? tableProblems(key, at, tier)
    : (key.items ?? []).flatMap((item) => tableProblems(item, `${at}[]`, tier));
  return [
    ...(key.flags?.description === undefined ? [`the key ${at} lacks .description()`] : []),
    ...(isDefaulted(key) ? [] : [`the key ${at} lacks .default(), .required() or .optional()`]),
    ...(tier === undefined ? [`the key ${at} lacks .meta({ tier: … })`] : []),
    ...inner,
  ];
}

function isDefaulted({ flags = {}, keys }: KeyDescription): boolean {
  return (
    Object.hasOwn(flags, 'default') ||
    flags.presence === 'required' ||
    flags.presence === 'optional' ||
    keys !== undefined
  );
}

/** A sample may refer to secrets that do not exist on this machine. */
export const sampleSecrets: Secrets = {
  resolve: (secret) => (typeof secret === 'string' ? secret : 'secret of the sample'),
};

export interface SampleOptions {
  readonly entries: readonly ContributionEntry[];
  readonly services: CheckServices;
  readonly log: Logger;
}

/** The sample's text, completed with what every document needs. Throws when there is none. */
export async function readSample(folder: string): Promise<string> {
  // Said below.
  const text = await readFile(path.join(folder, 'sample.toml'), 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new Error('sample.toml is missing; show a working configuration of the plugin in it');
  return 'connections' in parse(text) ? text : `connections = []\n${text}`;
}

export async function sampleProblems(folder: string, options: SampleOptions): Promise<readonly string[]> {
  try {
    const text = await readSample(folder);
    const service = createConfigService({
      file: path.join(folder, 'sample.toml'),
      entries: () => options.entries,
      services: options.services,
      log: options.log,
    });
    const check = await service.check(text, 'file');
    return check.ok ? [] : [`sample.toml is not valid: ${check.message}`];
  } catch (error) {
    return [(error as Error).message];
  }
}
