/** The results of `mountkeeper doctor`, from a child process: no check may block the daemon. */
import { join } from 'node:path';
import { html } from 'mountkeeper';
import type { Check, Content, Outcome, PluginContext, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { icon } from '../pages/nodes.ts';
import { foundIn } from '../said.ts';

const TONES = { ok: 'good', warning: 'warn', error: 'bad' } as const;
const ORDER = { error: 0, warning: 1, ok: 2 } as const;
const LONGEST_MS = 60_000;
/** Results are shown again for this long instead of running the checks again. */
const GOOD_FOR_MS = 60_000;

interface Findings {
  readonly at: number;
  readonly checks: readonly Check[];
}

export class Doctor {
  readonly #ctx: PluginContext;
  readonly #readers = new Set<() => void>();
  #last: Findings | undefined;
  #running: Promise<void> | undefined;

  constructor(ctx: PluginContext) {
    this.#ctx = ctx;
  }

  get last(): Findings | undefined {
    return this.#last;
  }

  get isLooking(): boolean {
    return this.#running !== undefined;
  }

  /** Rejects when there are no results. */
  async look(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      this.#tell();
    });
    this.#tell();
    await this.#running;
  }

  watch(changed: () => void): () => void {
    this.#readers.add(changed);
    const isOld = this.#last === undefined || this.#ctx.use('clock').now() - this.#last.at > GOOD_FOR_MS;
    if (isOld) this.look().catch((err: unknown) => this.#ctx.log.warn({ err }, 'doctor could not be asked'));
    return () => void this.#readers.delete(changed);
  }

  #tell(): void {
    for (const changed of this.#readers) changed();
  }

  async #run(): Promise<void> {
    const { packageDir } = this.#ctx.use('paths');
    const env = Object.fromEntries(
      Object.entries(process.env).filter((pair): pair is [string, string] => pair[1] !== undefined),
    );
    const { stdout, stderr } = await this.#ctx.use('processes').run({
      command: process.execPath,
      args: [
        join(packageDir, 'dist/core/main.js'),
        'doctor',
        '--json',
        '--config',
        this.#ctx.use('config').file,
      ],
      env,
      timeoutMs: LONGEST_MS,
      signal: this.#ctx.signal,
    });
    const line = stdout.trim().split('\n').at(-1) ?? '';
    if (!line.startsWith('[')) throw new Error(stderr.trim().split('\n').at(-1) ?? 'doctor gave no answer');
    this.#last = { at: this.#ctx.use('clock').now(), checks: JSON.parse(line) as readonly Check[] };
  }
}

function finding({ title, result, detail, advice }: Check, view: View): Content {
  const tone = TONES[result];
  const said = (text: string): Content => html`<bdi>${foundIn(view.language, text)}</bdi>`;
  return html`<li data-tone=${tone}>${icon(tone)}<div>
    <p><strong>${said(title)}</strong> <small>${view.t(`doctor-${tone}`)}</small></p>
    <p>${said(detail)}</p>${advice === '' ? null : html`<p class="reason">${said(advice)}</p>`}</div></li>`;
}

function findings(doctor: Doctor, view: View): Content {
  const { last, isLooking } = doctor;
  if (!last) return html`<p class="empty">${view.t(isLooking ? 'doctor-looking' : 'doctor-nothing')}</p>`;
  const of = (result: Check['result']): number =>
    last.checks.filter((check) => check.result === result).length;
  const sorted = [...last.checks].sort((a, b) => ORDER[a.result] - ORDER[b.result]);
  return html`<div class="drawn"><p>${view.t('doctor-sum', {
    bad: of('error'),
    warn: of('warning'),
    good: of('ok'),
  })}${' '}<small>${isLooking ? view.t('doctor-looking') : view.time(last.at, 'ago')}</small></p>
    <ul class="notices">${sorted.map((check) => finding(check, view))}</ul></div>`;
}

async function again(doctor: Doctor): Promise<Outcome> {
  await doctor.look();
  return { ok: true, message: everywhere('doctor-done') };
}

export function doctorTab(ctx: PluginContext): Tab {
  const doctor = new Doctor(ctx);
  return {
    id: 'doctor',
    order: 70,
    title: everywhere('doctor'),
    access: { see: 'operator', act: { again: 'operator' } },
    texts: CATALOGUES,
    icon: 'M4 12h4l2-6 4 12 2-6h4',
    controls: (view) =>
      html`<div class="actions">${view.button({ action: 'again', label: everywhere('doctor-again') })}</div>`,
    render: (view) => findings(doctor, view),
    questions: ['again'],
    actions: { again: () => again(doctor) },
    watch: (changed) => doctor.watch(changed),
  };
}
