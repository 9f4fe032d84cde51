/**
 * What a screen reader says by itself, and says once: that the line is lost, that it is back, and another main
 * sentence. What is shown counts seconds and bytes all the while; it is read when somebody goes there.
 */

/** Then it is empty again: whoever reads through the page later would take it for what is so now. */
const STAYS_MS = 10_000;
/** Figures and times of a new sentence are in their places by then. */
const DRAWN_MS = 250;

/** `alert`: it breaks into what is being read. */
export function sayAloud(text: string, how: 'alert' | 'status'): void {
  const place = document.getElementById(`aloud-${how}`);
  if (!place) return;
  place.textContent = text;
  setTimeout(() => {
    if (place.textContent === text) place.textContent = '';
  }, STAYS_MS);
}

function mainSentence(): HTMLElement | null {
  return document.querySelector('.sentence');
}

let saidKey = mainSentence()?.dataset['key'];

document.addEventListener('htmx:sseMessage', () => {
  const key = mainSentence()?.dataset['key'];
  if (key === saidKey) return;
  saidKey = key;
  setTimeout(() => {
    const headline = mainSentence()?.querySelector('.headline')?.textContent ?? '';
    if (key === saidKey) sayAloud(headline, 'status');
  }, DRAWN_MS);
});
