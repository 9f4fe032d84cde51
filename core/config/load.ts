/**
 * Loads a document: parses, validates, completes and cross-checks it, and asks the plugins. Each step
 * either passes the document on or ends with problems; nothing outside is changed, nothing is thrown.
 */
import { dirname } from 'node:path';
import type { Config, ConfigOrigin, ConfigProblem, LoadedConfig } from '../contract/config.ts';
import type { Requester } from '../contract/http.ts';
import { complete } from './complete.ts';
import { crossProblems, maskProblems, secretProblems, typedBehindMask } from './checks/cross-checks.ts';
import { accessProblems } from './checks/access.ts';
import { suggestion } from './schema/did-you-mean.ts';
import { copy, deepFreeze, isTable, parseDocument } from '../sdk/toml/document.ts';
import type { Document } from '../sdk/toml/document.ts';
import { fileOnlyProblems } from './checks/file-only.ts';
import { pluginFindings, untrustedFindings } from './checks/plugin-checks.ts';
import type { CheckServices, Findings } from './checks/plugin-checks.ts';
import { protocolProblems, protocolWarnings } from './checks/protocols.ts';
import type { ProtocolName } from './checks/protocols.ts';
import { describeProblems, locate, schemaProblems } from './checks/problems.ts';
import type { Assembly } from './schema/schema.ts';
import { asReferences } from './secrets/shown-text.ts';
import type { KeptSecret } from './secrets/shown-text.ts';
import { messageOf } from '../platform/log/thrown.ts';

const SCHEMA_OPTIONS = { abortEarly: false, convert: false, errors: { wrap: { label: false } } } as const;
const MOST_WARNINGS = 20;

export interface LoadOptions {
  readonly file: string;
  readonly assembly: Assembly;
  /** Undefined: any name is taken, and none is filled in. */
  readonly protocols: readonly ProtocolName[] | undefined;
  readonly services: CheckServices;
  readonly origin: ConfigOrigin;
  /** The running configuration, if there is one. */
  readonly current: Config | undefined;
  /** Third parties' plugins that are left out of `assembly`: sentences by their names. */
  readonly unfit?: ReadonlyMap<string, string>;
  /** Secrets that the sender left masked. */
  readonly kept?: readonly KeptSecret[];
  /** By the path of a secret that the sender left masked: a name under which none is known. */
  readonly strange?: ReadonlyMap<string, string>;
  /** Whose request brought it. */
  readonly requestedBy?: Requester | undefined;
  /** This is not the daemon's process. */
  readonly isOffline?: boolean | undefined;
  /** Somebody is looking: a protocol that nobody knows is a problem. Otherwise it is a warning. */
  readonly isStrict?: boolean;
}

export interface LoadFailure {
  readonly ok: false;
  readonly stage: 'parse' | 'validate';
  readonly problems: readonly ConfigProblem[];
  readonly message: string;
}

export type LoadResult = { readonly ok: true; readonly loaded: LoadedConfig } | LoadFailure;

/** Always resolves with a result, whatever the document or a plugin does. */
export async function load(text: string, options: LoadOptions): Promise<LoadResult> {
  try {
    return await loadSteps(text, options);
  } catch (error) {
    return failure('validate', [{ message: `the document cannot be checked: ${messageOf(error)}` }]);
  }
}

async function loadSteps(text: string, options: LoadOptions): Promise<LoadResult> {
  const parsed = parseDocument(text);
  if ('problem' in parsed) return failure('parse', [parsed.problem]);
  const { config, problems, warnings: told = [] } = validate(parsed.document, options);
  if (config === undefined) return failure('validate', locate(problems, text));
  deepFreeze(config);
  // Checked first, because later steps read references, and a plugin's check may run a program that the
  // document names.
  const untrusted = untrustedProblems(parsed.document, config, options);
  if (untrusted.length > 0) return failure('validate', locate([...problems, ...untrusted], text));
  const secrets = secretProblems(config, {
    document: parsed.document,
    secrets: options.services.secrets,
    isOffline: options.isOffline,
  });
  const wrong = [...problems, ...secrets.filter(({ isWarning }) => isWarning !== true)];
  if (wrong.length > 0) return failure('validate', locate(wrong, text));
  const found = await pluginFindings(config, { ...options, isStarting: isStarting(options) });
  if (found.problems.length > 0) return failure('validate', locate(found.problems, text));
  const document = deepFreeze(parsed.document);
  const { origin, requestedBy, unfit = new Map<string, string>() } = options;
  const all = Object.freeze([
    ...[...unfit].map(([plugin, reason]) => `plugin ${plugin}: ${reason}`),
    ...warnings(document, options.assembly),
    ...told,
    ...secrets.map(({ message }) => message),
    ...found.warnings,
  ]);
  return {
    ok: true,
    loaded: Object.freeze({
      text,
      document,
      config,
      warnings: all,
      origin,
      ...(requestedBy && { requestedBy }),
      ...(unfit.size > 0 && { unfit }),
    }),
  };
}

export function failure(stage: 'parse' | 'validate', problems: readonly ConfigProblem[]): LoadFailure {
  return { ok: false, stage, problems, message: describeProblems(problems) };
}

export interface Validated {
  readonly config?: Config;
  readonly problems: readonly ConfigProblem[];
  readonly warnings?: readonly string[];
}

/** The completed document, or why there is none. Leaves `document` as it is; reads nothing that it names. */
export function validate(
  document: Document,
  options: Pick<LoadOptions, 'assembly' | 'file' | 'protocols'> & Partial<LoadOptions>,
): Validated {
  const { assembly, file, protocols } = options;
  const masks = maskProblems(document).map((problem) => ofStranger(problem, options.strange));
  const checked = assembly.schema.validate(copy(document), SCHEMA_OPTIONS);
  if (checked.error !== undefined || masks.length > 0) {
    const found = checked.error === undefined ? [] : schemaProblems(checked.error, assembly.root);
    const masked = new Set(masks.map((problem) => problem.path));
    return { problems: [...found.filter((problem) => !masked.has(problem.path)), ...masks] };
  }
  const completed = complete(checked.value as Document, assembly, {
    folder: dirname(file),
    protocols: protocols ?? [],
  });
  if (completed.problems.length > 0) return { problems: completed.problems };
  const checks = crossChecks(completed.config, document, options);
  return {
    config: completed.config,
    problems: checks.problems,
    warnings: [...completed.warnings, ...checks.warnings],
  };
}

/** Secrets are kept by name: that of a table that was renamed is not. */
function ofStranger(problem: ConfigProblem, strange: LoadOptions['strange']): ConfigProblem {
  const { path = '' } = problem;
  const name = strange?.get(path);
  if (name === undefined) return problem;
  const message = `${path} has no secret to keep: nothing called "${name}" is in force; after a rename, give it again`;
  return { ...problem, message };
}

/** The daemon starts: there is no document yet that could stay in force. */
function isStarting({ current, isStrict }: Pick<Partial<LoadOptions>, 'current' | 'isStrict'>): boolean {
  return current === undefined && isStrict !== true;
}

/** What no single key shows, and names that nobody knows. */
function crossChecks(config: Config, document: Document, options: Parameters<typeof validate>[1]): Findings {
  const { assembly, file, protocols, isStrict, current } = options;
  const strangers = accessProblems(config, assembly.entries);
  // It goes on without them, as without a protocol whose plugin is missing: they enter nothing.
  const goesOn = isStarting(options);
  return {
    problems: [
      ...crossProblems(config, file),
      ...(goesOn ? [] : strangers),
      ...(protocols && isStrict === true ? protocolProblems(config, protocols, current) : []),
    ],
    warnings: [
      ...(goesOn ? strangers.map(({ message }) => message) : []),
      ...(protocols ? protocolWarnings(config, document, protocols) : []),
    ],
  };
}

/** What a document over HTTP may not add or change: by the schema's marks, and by what plugins say. */
function untrustedProblems(document: Document, config: Config, options: LoadOptions): ConfigProblem[] {
  const { origin, assembly, kept = [] } = options;
  if (origin !== 'http' || options.current === undefined) return [];
  const { next, current } = asReferences({ next: config, current: options.current }, kept, assembly.root);
  const marked = fileOnlyProblems({ document, config: next, current }, assembly.root);
  const said = untrustedFindings(assembly.entries, next, current);
  const behind = typedBehindMask(document, options.current);
  return [...behind, ...(kept.length === 0 ? [...marked, ...said] : [...marked, ...said].map(withWayOut))];
}

/** Adds a way out to a problem of a document whose secrets are masked. */
function withWayOut(problem: ConfigProblem): ConfigProblem {
  const isOfConnection = problem.path?.startsWith('connections[') === true;
  return isOfConnection
    ? { ...problem, message: `${problem.message}; or give the secrets of the connection again` }
    : problem;
}

/** Of `[plugins]`: no plugin's table. */
const OWN_KEYS: ReadonlySet<string> = new Set(['dirs', 'install_from_page']);

function warnings(document: Document, { plugins, rejected }: Assembly): string[] {
  const tables = isTable(document['plugins']) ? Object.keys(document['plugins']) : [];
  const unknown = tables.filter((name) => !OWN_KEYS.has(name) && !plugins.includes(name));
  return [
    ...unknown
      .slice(0, MOST_WARNINGS)
      .map(
        (name) =>
          `[plugins.${name}]: there is no plugin of that name; its keys are kept${suggestion(name, plugins)}`,
      ),
    ...rejected.map(({ owner, reason }) => `plugin ${owner} is left out: ${reason}`),
  ];
}
