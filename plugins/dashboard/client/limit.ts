/** The sliders of the bandwidth limit: each and the text beside it follow each other, and the limit in force. */

/** As the configuration has it, and as people read it. */
type Stop = readonly [written: string, shown: string];

const POWERS = 'BKMGT';

/** Bytes per second; NaN for what is no rate: the daemon says so when it is sent. */
function bytesOf(written: string): number {
  const [, amount, unit = 'K'] = /^(\d+(?:\.\d+)?)\s*([BKMGT])?/i.exec(written.trim()) ?? [];
  return Number(amount) * 1024 ** POWERS.indexOf(unit.toUpperCase());
}

/** The last stop is no limit. */
function nearest(written: string, stops: readonly Stop[]): number {
  const bytes = bytesOf(written);
  if (bytes === 0) return stops.length - 1;
  const away = stops.slice(0, -1).map(([stop]) => Math.abs(Math.log(bytesOf(stop) / bytes)));
  return away.indexOf(Math.min(...away));
}

/** A text that is no stop is shown as it was written. */
function show(box: Element, written: string): void {
  const slider = box.querySelector<HTMLInputElement>('input[type=range]');
  const shown = box.querySelector('.shown-rate');
  if (!slider || !shown) return;
  const stops = JSON.parse(slider.dataset['stops'] ?? '[]') as readonly Stop[];
  const stop = stops.find(([one]) => bytesOf(one) === bytesOf(written));
  const words = stop?.[1] ?? written;
  shown.textContent = words;
  slider.setAttribute('aria-valuetext', words);
  const position = nearest(written, stops);
  if (position !== -1) slider.valueAsNumber = position;
}

document.addEventListener('input', ({ target }) => {
  const box = target instanceof HTMLInputElement ? target.closest('.rate') : null;
  const text = box?.querySelector<HTMLInputElement>('input[name]');
  if (!(target instanceof HTMLInputElement) || !box || !text) return;
  if (target !== text) {
    const stops = JSON.parse(target.dataset['stops'] ?? '[]') as readonly Stop[];
    text.value = stops[target.valueAsNumber]?.[0] ?? text.value;
  }
  show(box, text.value);
});

/** What somebody else has set shows, too, unless somebody is at the form. */
function follow(): void {
  const form = document.querySelector<HTMLFormElement>('form.limit');
  const inForce = document.querySelector<HTMLElement>('#card-limit dl');
  if (!form || !inForce || form.dataset['typed'] !== undefined || form.matches('.htmx-request')) return;
  for (const text of form.querySelectorAll<HTMLInputElement>('.rate input[name]')) {
    const now = inForce.dataset[text.name];
    const box = text.closest('.rate');
    if (now === undefined || !box || now === text.value) continue;
    text.value = now;
    show(box, now);
  }
}

document.addEventListener('htmx:sseMessage', follow);

export {};
