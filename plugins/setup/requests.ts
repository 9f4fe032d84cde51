/**
 * The first run as requests and answers: the same over HTTP and, before the first start, inside the command
 * line.
 */
import { Joi } from 'mountkeeper';
import type {
  ConfigAnswer,
  ConfigAuthor,
  FoundNas,
  LanAddresses,
  NasAnswers,
  NasFinder,
  SetupAnswers,
  SetupService,
} from 'mountkeeper';
import { KINDS, nasProblem } from './answers.ts';

const MOST_FOLDERS = 100;
const LONGEST_PATH = 4_096;

export interface FoldersRequest {
  readonly nas: NasAnswers;
  /** The folder to look into; empty for the root. */
  readonly path: string;
}

export interface FoldersAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly folders: readonly string[];
}

/** `toml`: what would be added, secrets masked. */
export interface ReviewAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly toml: string;
  readonly diff_summary: string | null;
  readonly shares: readonly string[];
  readonly warnings: readonly string[];
}

export interface AppliedAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly diff_summary: string | null;
  readonly shares: readonly string[];
  readonly addresses: readonly {
    readonly share: string;
    readonly finder: string;
    readonly explorer: string | null;
    readonly linux: string;
  }[];
  /** People signed in by that name before: the password stays as it was. */
  readonly user_kept: boolean;
}

/** What the guide on the terminal asks; the daemon, or this process in its place, answers. */
export interface SetupCalls {
  /** Names of the shares that are configured. */
  present(): Promise<readonly string[]>;
  found(): Promise<readonly FoundNas[]>;
  folders(request: FoldersRequest): Promise<FoldersAnswer>;
  review(answers: SetupAnswers): Promise<ReviewAnswer>;
  apply(answers: SetupAnswers): Promise<AppliedAnswer>;
}

const line = (most: number) =>
  Joi.string()
    .allow('')
    .max(most)
    .pattern(/^[^\x00-\x1f\x7f]*$/)
    .messages({ 'string.pattern.base': '{{#label}} must not contain control characters' });
const NAS = Joi.object<NasAnswers>({
  kind: Joi.string()
    .valid(...KINDS)
    .default('smb'),
  address: line(2_048).required(),
  user: line(256).default(''),
  password: line(1_024).default(''),
});
const path = () => line(LONGEST_PATH);

export const FOLDERS_REQUEST = Joi.object<FoldersRequest>({ nas: NAS.required(), path: path().default('') });
export const SETUP_REQUEST = Joi.object<SetupAnswers>({
  nas: NAS.required(),
  folders: Joi.array().items(path()).min(1).max(MOST_FOLDERS).required(),
  lan: Joi.object({
    user: line(32).min(1).disallow('').required(),
    password: line(1_024).disallow('').required(),
  }),
});

/** Answers from a set-up in this process. `finder` looks for NAS in the network. */
export function callsOf(
  setup: SetupService,
  finder: () => NasFinder | undefined,
  by: ConfigAuthor,
  signal?: AbortSignal,
): SetupCalls {
  return {
    present: () => Promise.resolve(setup.present),
    found: async () => (await finder()?.find(signal)) ?? [],
    folders: async ({ nas, path: at }) => {
      try {
        return { ok: true, message: '', folders: await setup.folders(nas, at) };
      } catch (error) {
        signal?.throwIfAborted();
        return { ok: false, message: sentenceOf(error), folders: [] };
      }
    },
    review: (answers) => review(setup, answers),
    apply: (answers) => apply(setup, answers, by),
  };
}

async function review(setup: SetupService, answers: SetupAnswers): Promise<ReviewAnswer> {
  const refused = (message: string): ReviewAnswer => ({
    ok: false,
    message,
    toml: '',
    diff_summary: null,
    shares: [],
    warnings: [],
  });
  try {
    const verdict = await setup.check(answers);
    if (!verdict.ok) return refused(verdict.message);
    const { summary, warnings } = verdict;
    const shares = setup.shareNames(answers.folders);
    return { ok: true, message: '', toml: setup.preview(answers), diff_summary: summary, shares, warnings };
  } catch (error) {
    return refused(sentenceOf(error));
  }
}

async function apply(setup: SetupService, answers: SetupAnswers, by: ConfigAuthor): Promise<AppliedAnswer> {
  const shares = setup.shareNames(answers.folders);
  const isKept = answers.lan !== undefined && setup.knowsUser(answers.lan.user);
  const { ok, message, summary } = await applied(setup, answers, by);
  const addresses = ok && answers.lan ? setup.addresses(shares, answers.lan.user) : [];
  return {
    ok,
    message,
    diff_summary: summary,
    shares: ok ? shares : [],
    addresses: addresses.map(asJson),
    user_kept: isKept,
  };
}

/** Answers that make no configuration are refused with a sentence, as `review` refuses them. */
async function applied(
  setup: SetupService,
  answers: SetupAnswers,
  by: ConfigAuthor,
): Promise<Pick<ConfigAnswer, 'ok' | 'message' | 'summary'>> {
  const problem = nasProblem(answers.nas);
  return problem === undefined ? setup.apply(answers, by) : { ok: false, message: problem, summary: null };
}

function asJson({ share, finder, explorer, linux }: LanAddresses): AppliedAnswer['addresses'][number] {
  return { share, finder, explorer: explorer ?? null, linux };
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
