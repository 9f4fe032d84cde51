/** The settings editor: the text and the form, the effect of a change, and applying it. */
import { editToml, html, joinPath, MASK, messageOf, readToml } from 'mountkeeper';
import type {
  ConfigAnswer,
  ConfigChanges,
  ConfigPresets,
  ConfigProblem,
  ConnectionOption,
  Content,
  Outcome,
  PluginContext,
  TomlEdit,
  View,
} from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { icon } from '../pages/nodes.ts';
import { additionTo } from './additions.ts';
import { arrival, changesOf } from './arrival.ts';
import { fieldsPanel, knownOptions } from './fields.ts';
import type { Knowledge } from './fields.ts';
import { namesOf } from './offers.ts';
import { takenBackNotice } from './past.ts';
import { settingIn } from '../said.ts';
import { pageAt } from './page-place.ts';
import type { Listening } from './page-place.ts';
import { editOf, isOptions, NAMED } from './sections.ts';
import { at, isMask } from './typed.ts';
import type { Path } from './typed.ts';
import { digest, problemsPanel, verdictPanel } from './verdict.ts';

type Table = Readonly<Record<string, unknown>>;

/** Names of the shares whose uploads are paused now. */
function pausedShares(ctx: PluginContext): readonly string[] {
  return ctx
    .use('shares')
    .list()
    .filter(({ mount }) => mount?.uploadPause?.until !== undefined)
    .map(({ spec }) => spec.share.name);
}

function presetsOf(ctx: PluginContext): ReturnType<ConfigPresets['list']> {
  return ctx.find('configPresets')?.list() ?? [];
}

export class Editor {
  readonly #ctx: PluginContext;

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
  }

  /** Where another version runs, or one was kept or taken back, open pages get the controls anew. */
  get controlsVersion(): string {
    const changes = changesOf(this.#ctx);
    return changes ? `${keptOf(changes)} ${changes.takenBack?.message ?? ''}` : '';
  }

  /**
   * `data-draft`: what somebody has typed into, with the version that the text is of; it is left alone when all is
   * drawn anew. What came of applying a version (`data-kept`) stands as long as that version is on trial: afterwards
   * it is not taken back any more.
   */
  controls(view: View): Content {
    const changes = changesOf(this.#ctx);
    if (!changes) return html`<p class="empty">${view.t('settings-no-api')}</p>`;
    const config = this.#ctx.use('config');
    const text = config.shown();
    return html`<div class="settings">
      <section class="drawn" data-draft aria-label=${view.t('settings-form')}>
        ${this.#presets(view)}${this.#fields(text, view, false)}
      </section>
      <div class="side drawn">
        <section class="drawn" data-draft aria-label=${view.t('settings-text')}>
          ${config.isShownAnew() ? anewNotice(view) : null}
          <label for="settings-text">${view.t('settings-text')}</label>
          ${textarea(text, view, false)}
          <p class="help" id="settings-text-help">${view.t('settings-text-help')}</p>
          ${version(changes.version, false)}
        </section>
        <section class="bar drawn" aria-label=${view.t('settings-outcome')}>
          ${takenBackNotice(changes, view)}${behind(changes.version, view, false)}
          <output id="settings-outcome" data-kept=${keptOf(changes)} aria-live="polite"></output>
          <div id="settings-verdict" class="drawn" data-draft aria-live="polite"></div>
        </section>
      </div>
    </div>`;
  }

  #presets(view: View): Content {
    const presets = presetsOf(this.#ctx);
    return presets.length === 0
      ? null
      : html`<div
          class="actions"
          role="group"
          aria-label=${view.t('presets')}
          hx-include="#settings-text"
          hx-target="#settings-verdict"
          hx-swap="innerHTML"
          hx-sync=".settings:queue all"
        >
          <span>${view.t('presets')}</span
          >${presets.map(
            ({ name, title }) => html`<button type="button" hx-post=${view.action('preset')}
              hx-vals=${JSON.stringify({ name })}>${view.text(title)}</button>`,
          )}
        </div>`;
  }

  /** Unchanged when the text cannot be parsed, because the user's input has priority. */
  #fields(text: string, view: View, isSwapped: boolean): Content {
    const document = read(text);
    return (
      document &&
      html`<div id="settings-fields" hx-swap-oob=${isSwapped ? 'morph' : undefined}>
        ${fieldsPanel(document, this.#ctx.use('config').keys(), view, {
          ...this.#knowledge,
          isSecret: this.#ctx.use('config').secretsIn(document),
        })}
      </div>`
    );
  }

  get #knowledge(): Knowledge {
    const options = (type: string): readonly ConnectionOption[] =>
      this.#ctx.find('mounter')?.optionsOf?.(type) ?? [];
    return { names: namesOf(this.#ctx), options };
  }

  async #verdict(text: string, view: View): Promise<Content> {
    const verdict = await this.#changes().check(text, { keepSecrets: true });
    const isAnew = this.#ctx.use('config').isShownAnew();
    return verdictPanel({ text, paused: pausedShares(this.#ctx), web: this.#web, isAnew }, verdict, view);
  }

  get #web(): Listening {
    return this.#ctx.use('config').current.config.web;
  }

  #changes(): ConfigChanges {
    return this.#ctx.use('configChanges');
  }

  /** Called when the text was edited. */
  async check(view: View): Promise<Outcome> {
    const text = textOf(view);
    return answer([await this.#verdict(text, view), this.#fields(text, view, true)]);
  }

  /** Called when a field was changed. */
  set(view: View): Promise<Outcome> {
    const path = pathOf(view);
    const document = read(textOf(view));
    const text = (view.form['value'] ?? '').replaceAll('\r\n', '\n');
    if (text === '' && this.#isKept(path, document)) return this.#edit(view, [{ path, value: MASK }], false);
    const keys = this.#ctx.use('config').keys();
    const optionType = (option: Path): string | undefined => this.#typeOf(option, document);
    return this.#edit(view, [editOf(path, text, { document, keys, optionType })], false);
  }

  /** A secret whose field is left empty, or is emptied again, stays as it is. */
  #isKept(path: Path, document: Table | undefined): boolean {
    if (isMask(at(document, path))) return true;
    const shown = read(this.#ctx.use('config').shown());
    const index = path.findIndex((segment) => typeof segment === 'number');
    if (index === -1) return isMask(at(shown, path));
    const items = at(shown, path.slice(0, index));
    const name = at(document, [...path.slice(0, index + 1), 'name']);
    const same = Array.isArray(items) && items.find((item) => at(item, ['name']) === name);
    return typeof name === 'string' && isMask(at(same, path.slice(index + 1)));
  }

  /** Of an option of a connection; undefined where any text is one, or nothing is known. */
  #typeOf(option: Path, document: unknown): string | undefined {
    const known = knownOptions(document, option.slice(0, -1), this.#knowledge);
    const type = known.find(({ name }) => name === option.at(-1))?.type;
    return type === 'integer' || type === 'boolean' ? type : undefined;
  }

  add(view: View): Promise<Outcome> {
    const path = pathOf(view);
    const document = read(textOf(view));
    if (isOptions(path)) return this.#addNamed(view, path, at(document, path));
    const array = String(path[0]);
    const items = at(document, array.split('.'));
    if (NAMED.has(array)) return this.#addNamed(view, path, items);
    const value = additionTo(array, document);
    if (!value) return Promise.resolve({ ok: false, message: everywhere('settings-unknown') });
    const index = Array.isArray(items) ? items.length : 0;
    return this.#edit(view, [{ path: [...array.split('.'), index], value }], true);
  }

  /** What it is to hold is written in the field that comes with it. */
  #addNamed(view: View, path: Path, present: unknown): Promise<Outcome> {
    const name = (view.form['entry'] ?? '').trim();
    const problem =
      name === '' ? 'add-name-missing' : Object.hasOwn(Object(present), name) ? 'add-name-taken' : undefined;
    if (problem !== undefined) return Promise.resolve({ ok: false, message: everywhere(problem) });
    const own = [...path, name];
    const option = this.#typeOf(own, read(textOf(view))) === 'boolean' ? true : '';
    return this.#edit(view, [{ path: own, value: isOptions(path) ? option : [] }], true);
  }

  remove(view: View): Promise<Outcome> {
    return this.#edit(view, [{ path: pathOf(view) }], true);
  }

  preset(view: View): Promise<Outcome> {
    const preset = presetsOf(this.#ctx).find(({ name }) => name === view.form['name']);
    if (!preset) return Promise.resolve({ ok: false, message: everywhere('settings-unknown') });
    return this.#edit(view, preset.edits, true);
  }

  /** What cannot be written stands at its field, beside what the text would do as it is. */
  async #edit(view: View, edits: readonly TomlEdit[], isForm: boolean): Promise<Outcome> {
    const before = textOf(view);
    const text = editedText(before, edits);
    if (typeof text !== 'string')
      return answer([problemsPanel([text], text.message, view), await this.#verdict(before, view)]);
    return answer([
      await this.#verdict(text, view),
      textarea(text, view, true),
      isForm ? this.#fields(text, view, true) : null,
    ]);
  }

  /** Loads a former version into the editor, without applying it. Its secrets are masked: those in force stay. */
  async restore(view: View): Promise<Outcome> {
    const { version = '' } = view.form;
    const text = this.#changes().text(version);
    if (text === undefined) return { ok: false, message: everywhere('version-gone') };
    const verdict = await this.#verdict(text, view);
    const said = this.#changes().isAnew(version)
      ? 'restored-anew'
      : text.includes(MASK)
        ? 'restored-but-secrets'
        : 'restored-to-editor';
    return {
      ok: true,
      message: everywhere(said),
      content: [textarea(text, view, true), this.#fields(text, view, true), verdictBox(verdict)],
    };
  }

  async apply(view: View): Promise<Outcome> {
    const text = textOf(view);
    if (digest(text) !== view.form['seen']) return { ok: false, message: everywhere('settings-other') };
    const changes = this.#changes();
    const former = pageAt(this.#web, view.host);
    const answered = await changes.submit({
      text,
      by: 'page',
      keepSecrets: true,
      // Whoever leaves it out has read no version that could still be the one that runs.
      version: view.form['version'] ?? '',
      isStillLetIn: view.isStillLetIn,
      onTrial: true,
    });
    if (answered.status === 412)
      return {
        ok: false,
        message: everywhere('settings-meanwhile'),
        content: meanwhile(answered.summary, view),
      };
    if (!answered.ok) return { ok: false, message: answered.message };
    const isOnTrial = changes.trial?.version === answered.version;
    const said = isOnTrial ? 'settings-applied' : 'settings-stays';
    return {
      ok: true,
      message: everywhere(isOpen(answered) ? `${said}-open` : said),
      content: [
        this.#moved(former, view),
        isOnTrial ? arrival(answered.version, view) : null,
        version(answered.version, true),
        behind(answered.version, view, true),
        verdictBox(null),
      ],
    };
  }

  /** This page gets no more answers when it is elsewhere; there the settings are kept, or taken back. */
  #moved(former: string, view: View): Content {
    const now = pageAt(this.#web, view.host);
    return now === former
      ? null
      : html`<p>${view.t('settings-moved', { address: html`<a href=${now}><bdi>${now}</bdi></a>` })}</p>`;
  }
}

/** `settings.ts` of the page's script writes the same at what came of applying. */
function keptOf({ version: inForce, trial }: ConfigChanges): string {
  return trial ? `${inForce} trial` : inForce;
}

function isOpen({ stillOpen = [] }: ConfigAnswer): boolean {
  return stillOpen.length > 0;
}

function read(text: string): Table | undefined {
  try {
    return readToml(text);
  } catch {
    // The verdict shows what is wrong with it.
    return undefined;
  }
}

/** The new text, or why there is none. One that is no TOML stays as it is: the verdict says so. */
function editedText(text: string, edits: readonly TomlEdit[]): string | ConfigProblem {
  if (!read(text)) return text;
  try {
    return editToml(text, edits);
  } catch (error) {
    const [first] = edits;
    return { message: messageOf(error), ...(first && { path: joinPath(first.path) }) };
  }
}

function answer(content: Content): Outcome {
  return { ok: true, message: '', content };
}

/** Browsers send CRLF line breaks. */
function textOf({ form }: View): string {
  return (form['text'] ?? '').replaceAll('\r\n', '\n');
}

function pathOf({ form }: View): Path {
  const path: unknown = JSON.parse(form['path'] ?? '[]');
  const isPath =
    Array.isArray(path) &&
    path.length > 0 &&
    path.every((one) => typeof one === 'string' || Number.isSafeInteger(one));
  if (!isPath) throw new Error('no such key');
  return path as Path;
}

function textarea(text: string, view: View, isSwapped: boolean): Content {
  return html`<textarea
    id="settings-text"
    name="text"
    rows="24"
    spellcheck="false"
    autocomplete="off"
    wrap="off"
    aria-describedby="settings-text-help"
    hx-post=${view.action('check')}
    hx-trigger="input delay:400ms"
    hx-target="#settings-verdict"
    hx-swap="innerHTML"
    hx-sync=".settings:queue all"
    hx-swap-oob=${isSwapped ? 'morph' : undefined}
  >
${`\n${text}`}</textarea>`;
}

function version(value: string, isSwapped: boolean): Content {
  return html`<input
    type="hidden"
    id="settings-version"
    name="version"
    value=${value}
    hx-swap-oob=${isSwapped ? 'true' : undefined}
  />`;
}

/** The page's script shows it where the text is of another version than `inForce`, and somebody has typed into it. */
function behind(inForce: string, view: View, isSwapped: boolean): Content {
  return html`<ul
    class="notices"
    id="settings-behind"
    data-version=${inForce}
    hidden
    aria-live="polite"
    hx-swap-oob=${isSwapped ? 'true' : undefined}
  >
    <li data-tone="warn">
      ${icon('warn')}
      <div>
        <p>${view.t('settings-behind')}</p>
        <p><a href="/tabs/settings">${view.t('settings-reload')}</a></p>
      </div>
    </li>
  </ul>`;
}

function anewNotice(view: View): Content {
  return html`<ul class="notices">
    <li data-tone="warn">
      ${icon('warn')}
      <p>${view.t('settings-anew')}</p>
    </li>
  </ul>`;
}

function verdictBox(verdict: Content): Content {
  return html`<div id="settings-verdict" class="drawn" data-draft aria-live="polite" hx-swap-oob="true">
    ${verdict}
  </div>`;
}

function meanwhile(summary: string | null, view: View): Content {
  return html`<div class="drawn">
    ${
      summary === null || summary === ''
        ? null
        : html`<p>${view.t('settings-since')}</p>
            <ul class="difference">
              ${summary.split('\n').map((line) => html`<li><bdi>${settingIn(view.language, line)}</bdi></li>`)}
            </ul>`
    }
    <p><a href="/tabs/settings">${view.t('settings-reload')}</a></p>
  </div>`;
}
