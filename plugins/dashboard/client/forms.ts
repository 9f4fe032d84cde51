/** What a button asks (`QUESTION` of the daemon's side): it may say how many wait now. */
const QUESTION = ':question';

/** Equal: the same button, whatever has moved around it. */
export function formKey(form: HTMLFormElement): string {
  const hidden = [...form.querySelectorAll<HTMLInputElement>('input[type=hidden]')];
  const fields = hidden.filter(({ name }) => name !== QUESTION).map(({ name, value }) => [name, value]);
  return JSON.stringify([form.getAttribute('hx-post'), fields]);
}
