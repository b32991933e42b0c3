/** The installation does not send the e-mail, whatever its server says. */
export class MailRefusedError extends Error {
  constructor(why: string) {
    super(why);
    this.name = 'MailRefusedError';
  }
}
