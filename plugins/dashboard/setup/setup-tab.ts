/** "Add a NAS": four short steps, each tested before the next one. */
import { html } from 'mountkeeper';
import type {
  Content,
  FoundNas,
  NasAnswers,
  NasKind,
  Outcome,
  PluginContext,
  SetupAnswers,
  SetupService,
  Tab,
  View,
} from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { Sessions } from './sessions.ts';
import type { Session } from './sessions.ts';
import { doneStep, foldersStep, foundServers, guide, KINDS, lanStep, nasStep, reviewStep } from './steps.ts';
import type { GivenNas, Review } from './steps.ts';

const ICON = 'M4 6h16v5H4zM4 14h9v4H4zM8 8.5h.1M8 16h.1M18 13v8M14 17h8';
const FOLDER = 'f:';
const LONGEST_ADDRESS = 2_048;

class Guide {
  readonly #ctx: PluginContext;
  #sessions: Sessions | undefined;
  #looking: Promise<readonly FoundNas[]> | undefined;

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
  }

  get service(): SetupService | undefined {
    return this.#ctx.find('setup');
  }

  get #setup(): SetupService {
    return this.#ctx.use('setup');
  }

  get #known(): Sessions {
    this.#sessions ??= new Sessions(this.#ctx.use('clock'));
    return this.#sessions;
  }

  /** Readers who open the page at the same time share one look into the network. */
  async found(view: View): Promise<Content> {
    this.#looking ??= (this.#ctx.find('nasFinder')?.find(this.#ctx.signal) ?? Promise.resolve([])).finally(
      () => (this.#looking = undefined),
    );
    return foundServers(await this.#looking, view);
  }

  /** The NAS is asked at once; its answer is shown below the form. */
  async try(view: View): Promise<Outcome> {
    const session = this.#known.again(view.form['session'], nasOf(view));
    return this.#browse(session, view);
  }

  /** To the step before, with the answers so far. */
  async back(view: View): Promise<Outcome> {
    const session = this.#known.find(view.form['session']);
    if (!session) return over(view);
    switch (view.form['to']) {
      case 'nas':
        keepTicks(session, view);
        return next(nasStep(view, session));
      case 'folders':
        session.lan = lanOf(session, view);
        return this.#browse(session, view);
      default:
        return next(lanStep(session, view));
    }
  }

  async #browse(session: Session, view: View): Promise<Outcome> {
    const names = await this.#setup.folders(session.nas, session.at);
    return next(foldersStep(session, names, view));
  }

  async open(view: View): Promise<Outcome> {
    const session = this.#known.find(view.form['session']);
    if (!session) return over(view);
    keepTicks(session, view);
    session.at = view.form['path'] ?? '';
    return this.#browse(session, view);
  }

  choose(view: View): Outcome {
    const session = this.#known.find(view.form['session']);
    if (!session) return over(view);
    keepTicks(session, view);
    return session.folders.size === 0
      ? { ok: false, message: everywhere('choose-one') }
      : next(lanStep(session, view));
  }

  async share(view: View): Promise<Outcome> {
    const session = this.#known.find(view.form['session']);
    if (!session) return over(view);
    session.lan = lanOf(session, view);
    const missing = missingOf(session);
    if (missing !== undefined) return { ok: false, message: everywhere(missing) };
    return this.#review(session, view);
  }

  /** `lead`: what is said above it. */
  async #review(session: Session, view: View, lead: Content = null): Promise<Outcome> {
    const answers = answersOf(session);
    const version = this.#version;
    const verdict = await this.#setup.check(answers);
    if (!verdict.ok) return { ok: false, message: verdict.message };
    session.reviewed = version;
    const review = {
      verdict,
      names: this.#setup.shareNames(answers.folders),
      isKept: session.lan !== undefined && this.#setup.knowsUser(session.lan.user),
      smb: smbOf(this.#ctx),
    };
    return next([lead, reviewStep(session, review, view)]);
  }

  get #version(): string | undefined {
    return this.#ctx.find('configChanges')?.version;
  }

  async finish(view: View): Promise<Outcome> {
    const session = this.#known.find(view.form['session']);
    if (!session) return over(view);
    const missing = missingOf(session);
    if (missing !== undefined) return { ok: false, message: everywhere(missing) };
    // Others may have taken the names, or the user, that were shown.
    if (session.reviewed !== this.#version)
      return { ...(await this.#review(session, view, changedMeanwhile(view))), ok: false };
    const answers = answersOf(session);
    const names = this.#setup.shareNames(answers.folders);
    const { lan } = answers;
    const isKept = lan !== undefined && this.#setup.knowsUser(lan.user);
    const { ok, message } = await this.#setup.apply(answers, 'page');
    if (!ok) return { ok, message };
    this.#known.end(session.id);
    const addresses = lan ? this.#setup.addresses(names, lan.user, view.host) : [];
    return next(doneStep(addresses, isKept ? lan.user : undefined, view));
  }
}

/** The section of the plugin `smb`; where that is not there, nothing is exported. */
function smbOf(ctx: PluginContext): Review['smb'] {
  const { smb } = ctx.use('config').current.config as { readonly smb?: Partial<Review['smb']> };
  return { port: smb?.port ?? 445, listen: smb?.listen ?? [] };
}

function nasOf({ form }: View): NasAnswers {
  const { kind = 'smb', address = '', user = '', password = '' } = form;
  return { kind: kind as NasKind, address, user, password };
}

/**
 * What was typed, be it whole or not: a step back and forth loses none of it. The password from before, where none was
 * typed for the same user, or for the one that was missing.
 */
function lanOf({ lan }: Session, { form: { user = '', password = '' } }: View): Session['lan'] {
  if (user === '' && password === '') return undefined;
  const isForThis = lan !== undefined && (lan.user === user || lan.user === '');
  return { user, password: password === '' && isForThis ? lan.password : password };
}

/** What of the LAN's user is still to be typed: the key of a sentence. */
function missingOf({ lan }: Session): string | undefined {
  if (lan === undefined) return undefined;
  if (lan.user === '') return 'lan-user-missing';
  return lan.password === '' ? 'lan-password-missing' : undefined;
}

/** From the address of the part: whatever stands there only fills in the reader's own form. */
function chosenNas({ query }: View): GivenNas {
  const kind = KINDS.find((one) => one === query['kind']) ?? 'smb';
  return { nas: { kind, address: (query['address'] ?? '').slice(0, LONGEST_ADDRESS) } };
}

function answersOf({ nas, folders, lan }: Session): SetupAnswers {
  return { nas, folders: [...folders].sort(), lan };
}

/** A form sends only ticked boxes; boxes that were shown and not sent are unticked. */
function keepTicks({ at, folders }: Session, { form }: View): void {
  for (const folder of folders)
    if (folder === at || folder.split('/').slice(0, -1).join('/') === at) folders.delete(folder);
  for (const name of Object.keys(form)) if (name.startsWith(FOLDER)) folders.add(name.slice(FOLDER.length));
}

/** Replaces the step before. */
function next(content: Content): Outcome {
  return { ok: true, message: '', content: guide(content, true) };
}

function changedMeanwhile(view: View): Content {
  return html`<p class="outcome" data-tone="bad" role="alert">${view.t('setup-changed')}</p>`;
}

/** The daemon has started anew: no update of the page takes the guide back to its first step. */
function over(view: View): Outcome {
  const first = html`<p class="outcome" data-tone="bad" role="alert">${view.t('setup-over')}</p>${nasStep(view)}`;
  return { ok: false, message: everywhere('setup-over'), content: guide(first, true) };
}

/** Where there is no share, the way to `/` ends here. */
function isFirst(ctx: PluginContext): boolean {
  return ctx.use('config').current.config.shares.length === 0;
}

function toOverview(view: View): Content {
  return html`<p class="to-overview"><a href="/?overview=yes">${view.t('overview')}</a></p>`;
}

export function setupTab(ctx: PluginContext): Tab {
  const steps = new Guide(ctx);
  const asked =
    (act: (view: View) => Outcome | Promise<Outcome>) =>
    async (view: View): Promise<Outcome> =>
      steps.service ? act(view) : { ok: false, message: everywhere('setup-off') };
  return {
    id: 'setup',
    order: 62,
    title: everywhere('setup'),
    texts: CATALOGUES,
    icon: ICON,
    render: () => null,
    watch: () => () => undefined,
    controls: (view) =>
      steps.service
        ? [guide(nasStep(view), false), isFirst(ctx) ? toOverview(view) : null]
        : html`<p class="empty">${view.t('setup-off')}</p>`,
    parts: {
      found: (view) => (steps.service ? steps.found(view) : null),
      nas: (view) => nasStep(view, chosenNas(view)),
    },
    actions: {
      try: asked((view) => steps.try(view)),
      back: asked((view) => steps.back(view)),
      open: asked((view) => steps.open(view)),
      choose: asked((view) => steps.choose(view)),
      share: asked((view) => steps.share(view)),
      finish: asked((view) => steps.finish(view)),
    },
  };
}
