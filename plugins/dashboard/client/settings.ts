/**
 * The settings page: shows problems at their fields, and moves the cursor to a problem's line in the text.
 */

interface Problem {
  readonly path: string;
  readonly message: string;
}

function problems(): readonly Problem[] {
  const entries = document.querySelectorAll<HTMLElement>('#settings-verdict [data-problem]');
  return [...entries].map(({ dataset }) => ({
    path: dataset['problem'] ?? '',
    message: dataset['message'] ?? '',
  }));
}

/** Of a list's item both it and the list. */
function open(field: Element): void {
  for (let at = field.closest('details'); at; at = at.parentElement?.closest('details') ?? null)
    at.open = true;
}

/** One below the other. What stands there already is left alone. */
function say(messages: readonly string[], place: HTMLElement): void {
  place.hidden = messages.length === 0;
  const shown = [...place.children].map(({ textContent }) => textContent);
  if (JSON.stringify(shown) === JSON.stringify(messages)) return;
  place.replaceChildren(
    ...messages.map((message) => {
      const line = document.createElement('p');
      line.className = 'problem';
      line.textContent = message;
      return line;
    }),
  );
}

/** Whether a problem is of a place, or of what is inside. */
function isOf(problem: Problem, path: string): boolean {
  return problem.path === path || problem.path.startsWith(`${path}[`) || problem.path.startsWith(`${path}.`);
}

/** Of a field, or of a table or list that may have problems of its own. */
function pathOf({ dataset }: HTMLElement): string {
  return dataset['field'] ?? dataset['holds'] ?? '';
}

/** Each problem stands at the field that it is of; else at the nearest table or list around. */
function place(): void {
  const found = problems();
  const places = [...document.querySelectorAll<HTMLElement>('[data-field], [data-holds]')];
  const nearest = found.map((problem) =>
    places
      .filter((one) => isOf(problem, pathOf(one)))
      .reduce<HTMLElement | undefined>(
        (best, one) => (best && pathOf(best).length >= pathOf(one).length ? best : one),
        undefined,
      ),
  );
  for (const one of places) {
    const said = [...one.children].find((child) => child.classList.contains('problems'));
    if (!(said instanceof HTMLElement)) continue;
    const own = found.filter((_, index) => nearest[index] === one).map(({ message }) => message);
    say(own, said);
    if (own.length > 0) open(one);
    const input = one.matches('[data-field]') ? one.querySelector('input, select, textarea') : null;
    if (own.length === 0) input?.removeAttribute('aria-invalid');
    else input?.setAttribute('aria-invalid', 'true');
  }
}

document.addEventListener('htmx:afterSettle', place);
document.addEventListener('htmx:oobAfterSwap', place);

interface RequestEvent extends Event {
  readonly detail: {
    readonly pathInfo: { readonly requestPath: string };
    readonly requestConfig: { readonly parameters: Readonly<Record<string, unknown>> };
  };
}

function editor(): HTMLTextAreaElement | null {
  return document.querySelector('#settings-text');
}

// What a field, a preset or a former version has put into the text is as good as typed.
document.addEventListener('htmx:oobBeforeSwap', ({ target }) => {
  if (target === editor()) editor()?.closest('.settings')?.setAttribute('data-typed', '');
});

/** The version that the text in the editor is of. */
function version(): string | undefined {
  return document.querySelector<HTMLInputElement>('#settings-version')?.value;
}

// What is in force would not be lost. What came of it stands while it is on trial, or in force where it is on none
// (`keptOf` of the daemon's side).
document.addEventListener('htmx:afterRequest', (event) => {
  const { pathInfo, requestConfig } = (event as RequestEvent).detail;
  const outcome = document.querySelector<HTMLElement>('#settings-outcome');
  const isApplied =
    pathInfo.requestPath.endsWith('/settings/apply') &&
    outcome?.querySelector('.outcome[data-tone=good]') != null;
  if (!isApplied) return;
  const isOnTrial = outcome.querySelector('a[href$="#trial"]') !== null;
  outcome.dataset['kept'] = `${version() ?? ''}${isOnTrial ? ' trial' : ''}`;
  const text = editor();
  if (requestConfig.parameters['text'] === text?.value)
    text?.closest('.settings')?.removeAttribute('data-typed');
});

// The browser asks before it gives it up.
addEventListener('beforeunload', (event) => {
  if (document.querySelector('.settings[data-typed]')) event.preventDefault();
});

/** Others have applied something else while somebody types; not what is being applied here just now. */
function sayBehind(): void {
  const notice = document.getElementById('settings-behind');
  if (!notice) return;
  const isBehind = notice.dataset['version'] !== version();
  notice.hidden = !isBehind || document.querySelector('#settings-verdict .htmx-request') !== null;
}

for (const event of ['htmx:sseMessage', 'htmx:afterRequest', 'htmx:afterSettle'])
  document.addEventListener(event, sayBehind);

document.addEventListener('click', (event) => {
  const button =
    event.target instanceof Element ? event.target.closest<HTMLElement>('button[data-line]') : null;
  const text = editor();
  if (!button || !text) return;
  const line = Number(button.dataset['line']);
  const lines = text.value.split('\n');
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  text.focus();
  text.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0));
  text.scrollTop = ((line - 4) * text.scrollHeight) / lines.length;
});

export {};
